// What a variant of the scheme "nccl" names: NCCL's version or its month, and what is forced.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <sstream>
#include <utility>

#include "sim/collectives/nccl_tuner.hpp"

namespace ganymede::sim {
namespace {

/// Parses "2.18" or "2.18.3"; nullopt for anything else.
std::optional<NcclVersion> version_of(const std::string& text) {
  unsigned numbers[3] = {};
  const char *at = text.data(), *const end = at + text.size();
  for (std::size_t i = 0;; ++at) {
    const auto read = std::from_chars(at, end, numbers[i]);
    if (read.ec != std::errc() || numbers[i] > 1000) return std::nullopt;
    at = read.ptr;
    ++i;
    if (at == end) return i < 2 ? std::nullopt : std::optional(NcclVersion{int(numbers[0]), int(numbers[1])});
    if (*at != '.' || i == 3) return std::nullopt;
  }
}

/// The months of the first release of each minor version from 2.4 on: since 2.13 those of the first packages of
/// nvidia-nccl-cu11 and -cu12 (their upload times on PyPI, read on 2026-11-29), but for 2.15 and 2.20, which came a
/// month before them; earlier ones are from memory of NVIDIA's release notes and were held against nothing.
constexpr std::array kSince{
    std::pair{201901, 4},  std::pair{201911, 5},  std::pair{202003, 6},  std::pair{202006, 7},  std::pair{202011, 8},
    std::pair{202104, 9},  std::pair{202107, 10}, std::pair{202109, 11}, std::pair{202203, 12}, std::pair{202207, 13},
    std::pair{202208, 14}, std::pair{202210, 15}, std::pair{202212, 16}, std::pair{202303, 17}, std::pair{202305, 18},
    std::pair{202310, 19}, std::pair{202402, 20}, std::pair{202404, 21}, std::pair{202406, 22}, std::pair{202409, 23},
    std::pair{202501, 24}, std::pair{202501, 25}, std::pair{202503, 26}, std::pair{202506, 27}, std::pair{202509, 28},
    std::pair{202601, 29}, std::pair{202604, 30}, std::pair{202608, 31}, std::pair{202609, 32}};

/// 202103 of "2021-03".
int number_of(const std::string& month) { return std::stoi(month.substr(0, 4) + month.substr(5)); }

/// Months of so many years and months, as in 202103.
int months_of(int month) { return month / 100 * 12 + month % 100; }

/// The newest version in a month such as "2021-03"; nullopt for anything else, and before 2.4.
std::optional<NcclVersion> version_in(const std::string& month) {
  if (month.size() != 7 || month[4] != '-') return std::nullopt;
  const std::string digits = month.substr(0, 4) + month.substr(5);
  if (!std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); })) return std::nullopt;
  const int at = number_of(month);
  if (at < kSince.front().first || at % 100 < 1 || at % 100 > 12) return std::nullopt;
  const auto next = std::find_if(kSince.begin(), kSince.end(), [&](const auto& since) { return at < since.first; });
  return NcclVersion{2, std::prev(next)->second};
}

}  // namespace

std::optional<NcclOptions> parse_nccl_options(const std::string& variant, int minor) {
  constexpr std::array kAlgorithms{NcclAlgorithm::ring, NcclAlgorithm::tree, NcclAlgorithm::nvls,
                                   NcclAlgorithm::nvls_tree};
  constexpr std::array kProtocols{NcclProtocol::ll, NcclProtocol::ll128, NcclProtocol::simple};
  const auto lower = [](std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
  };
  NcclOptions options;
  options.version.minor = minor;
  bool has_version = false;
  std::istringstream parts(variant);
  for (std::string part; std::getline(parts, part, '/');) {
    part = lower(part);
    const auto* algorithm = std::find_if(kAlgorithms.begin(), kAlgorithms.end(),
                                         [&](NcclAlgorithm known) { return lower(to_string(known)) == part; });
    const auto* protocol = std::find_if(kProtocols.begin(), kProtocols.end(),
                                        [&](NcclProtocol known) { return lower(to_string(known)) == part; });
    if (algorithm != kAlgorithms.end()) {
      if (std::exchange(options.algorithm, *algorithm)) return std::nullopt;
    } else if (protocol != kProtocols.end()) {
      if (std::exchange(options.protocol, *protocol)) return std::nullopt;
    } else if (part == "any") {
      options.any_protocol = true;
    } else {
      const auto newest = version_in(part), version = newest ? newest : version_of(part);
      if (!version || std::exchange(has_version, true)) return std::nullopt;
      options.version = *version;
      if (newest) options.month = part;
    }
  }
  return options;
}

std::optional<NcclOptions> parse_nccl_options(const std::string& variant, const NcclMachine& machine) {
  return parse_nccl_options(variant, machine.minor > 0 ? machine.minor : NcclVersion().minor);
}

std::string why_no_version(const NcclOptions& options) {
  // A version has come every two months or so; half a year after the newest that is known there are others.
  constexpr int kMonths = 6;
  const int newest = kSince.back().first;
  if (options.month.empty() || months_of(number_of(options.month)) <= months_of(newest) + kMonths) return "";
  return fmt::format(
      "found \"{}\", but versions of NCCL are known up to {}-{:02}, and later months are taken for half a year only; "
      "expected an earlier month, or the version itself",
      options.month, newest / 100, newest % 100);
}

std::string nccl_version_note(const NcclOptions& options) {
  const NcclVersion version = options.version;
  const std::string name = fmt::format("NCCL {}.{}", version.major, version.minor);
  if (options.month.empty())
    return version.is_known() ? "" : fmt::format("constants of {} are not known, the nearest known were used", name);
  return fmt::format("{}, the newest {}in {}{}", name, number_of(options.month) > kSince.back().first ? "known " : "",
                     options.month,
                     version.is_known() ? "" : "; its constants are not known, the nearest known were used");
}

}  // namespace ganymede::sim
