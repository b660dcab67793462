#include "growth.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <new>
#include <optional>

#include "common/json_value.hpp"

namespace {
std::size_t held = 0, most_held = 0;  // a reader has one thread
}  // namespace

// The bytes that are held at a time are counted in each operator new and delete. The sanitizers have their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t size) {
  void* memory = std::malloc(std::max<std::size_t>(size, 1));
  if (memory == nullptr) throw std::bad_alloc();
  held += ::malloc_usable_size(memory);
  most_held = std::max(most_held, held);
  return memory;
}
void operator delete(void* memory) noexcept {
  held -= ::malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept { operator delete(memory); }
#endif

namespace ganymede::fuzz {
namespace {

constexpr double kLeastTime_s = 0.01, kLeastHeld = 4e6;  // less is noise
constexpr double kMostTime_s = 1;
constexpr double kSuperlinear = 1.3;

/// The text with the last number in it made another one.
std::string renumbered(std::string_view text, std::size_t number) {
  const std::size_t end = text.find_last_of("0123456789");
  if (end == text.npos) return std::string(text);
  const std::size_t before = text.find_last_not_of("0123456789", end);
  const std::size_t begin = before == text.npos ? 0 : before + 1;
  return fmt::format("{}{}{}", text.substr(0, begin), number, text.substr(end + 1));
}

template <class Part>
Grown repeated(std::string before, Part part, std::string after) {
  return [=](std::size_t bytes) {
    std::string out = before;
    for (std::size_t i = 0; out.size() + after.size() < bytes; ++i) out += part(i);
    return out + after;
  };
}

Grown grown_text(const std::string& text, RandomStream& random) {
  constexpr std::string_view kEnds[] = {"\n", ",;\t\n", " \n", ""};
  const std::size_t at = random.below(text.size());
  const std::string_view ends = kEnds[random.below(std::size(kEnds))];
  const std::size_t before = at == 0 || ends.empty() ? text.npos : text.find_last_of(ends, at - 1);
  const std::size_t first = before == text.npos ? 0 : before + 1;
  const std::size_t last = std::min(ends.empty() ? text.npos : text.find_first_of(ends, at), text.size());
  const std::string part = text.substr(first, std::max<std::size_t>(last - first + random.below(2), 1));
  const bool renumber = random.below(2) == 0;
  return repeated(
      text.substr(0, first), [=](std::size_t i) { return renumber ? renumbered(part, i) : part; },
      text.substr(first + part.size()));
}

void gather_places(const Json& value, const JsonPointer& at, std::vector<JsonPointer>& places) {
  places.push_back(at);
  if (value.is_object())
    for (const auto& [key, member] : value.items()) gather_places(member, at / key, places);
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) gather_places(value[i], at / std::to_string(i), places);
}

Grown grown_array(const Json& value, const std::string& before, const std::string& after, RandomStream& random) {
  const Json element = value.is_array() && !value.empty() ? value[random.below(value.size())] : value;
  const bool named = element.is_object() && element.contains("name") && element.at("name").is_string();
  const bool renumber = random.below(2) == 0;
  const std::string name = named ? element.at("name").get<std::string>() : "", last = element.dump();
  return repeated(
      before + "[",
      [=](std::size_t i) {
        if (!named) return (renumber ? renumbered(last, i) : last) + ",";
        Json other = element;
        other["name"] = name + std::to_string(i);
        return other.dump() + ",";
      },
      last + "]" + after);
}

std::optional<Grown> grown_document(const std::string& text, RandomStream& random) {
  Json document;
  try {
    document = Json::parse(text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  std::vector<JsonPointer> places;
  gather_places(document, JsonPointer(), places);
  Json& value = document.at(places[random.below(places.size())]);
  const Json part = value;
  constexpr std::string_view kMark = "\"@@here@@\"";
  value = "@@here@@";
  const std::string whole = document.dump();
  const std::size_t place = whole.find(kMark);
  const std::string before = whole.substr(0, place), after = whole.substr(place + kMark.size());
  if (part.is_string()) {
    const std::string word = part.get<std::string>().empty() ? "\"a\"" : part.dump();
    return repeated(
        before + "\"", [=](std::size_t) { return word.substr(1, word.size() - 2); }, "\"" + after);
  }
  if (!part.is_object() || part.empty()) return grown_array(part, before, after, random);
  std::vector<std::string> members;
  for (const auto& [key, member] : part.items()) members.push_back(member.dump());
  const std::string member = members[random.below(members.size())];
  return repeated(
      before + "{", [=](std::size_t i) { return fmt::format("\"key{}\":{},", i, member); },
      part.dump().substr(1) + after);
}

Cost cost_of(const Target& target, const std::string& text) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const std::size_t before = held;
  most_held = held;
  const double begun = now();
  try_input(target, text);
  return {now() - begun, static_cast<double>(most_held - before)};
}

/// How a cost grows over the last doubling, once what it is for a short input is subtracted.
double power(double base, double half, double whole, double least) {
  if (whole - base < least) return 0;
  return std::log2((whole - base) / std::max(half - base, 0.01 * whole));
}

}  // namespace

Grown grown(const std::string& text, RandomStream& random) {
  if (const auto document = random.below(8) != 0 ? grown_document(text, random) : std::nullopt) return *document;
  return text.empty() ? repeated(
                            "", [](std::size_t) { return "a"; }, "")
                      : grown_text(text, random);
}

Growth growth_of(const std::function<Cost(const std::string&)>& cost, const Grown& input, std::size_t most) {
  const Cost base = cost(input(1));
  Cost half = base, whole = base;
  for (std::size_t bytes = most / 16;; bytes *= 2) {
    half = std::exchange(whole, cost(input(bytes)));
    if (bytes >= most || whole.time_s > kMostTime_s)
      return {power(base.time_s, half.time_s, whole.time_s, kLeastTime_s),
              power(base.held, half.held, whole.held, kLeastHeld), whole, bytes};
  }
}

int report_growth(const Target& target, const std::vector<std::string>& corpus, std::uint64_t inputs,
                  std::uint64_t seed) {
  RandomStream random(seed, target.name);
  const auto cost = [&](const std::string& text) { return cost_of(target, text); };
  double time = 0, memory = 0, bytes_a_byte = 0;
  int superlinear = 0;
  for (std::uint64_t i = 0; i < inputs; ++i) {
    const Grown input = grown(corpus[random.below(corpus.size())], random);
    Growth growth = growth_of(cost, input);
    // Another process may have disturbed it.
    for (int again = 0; again < 2 && growth.time > kSuperlinear; ++again)
      growth.time = std::min(growth.time, growth_of(cost, input).time);
    time = std::max(time, growth.time), memory = std::max(memory, growth.memory);
    bytes_a_byte = std::max(bytes_a_byte, growth.cost.held / static_cast<double>(growth.bytes));
    if (std::max(growth.time, growth.memory) <= kSuperlinear) continue;
    const std::string file = fmt::format("grown-{}-{}", target.name, superlinear++);
    std::ofstream(file, std::ios::binary) << input(growth.bytes);
    fmt::print("{}: time grows with the power {:.2f}, memory {:.2f}: {} bytes take {:.2f} s and {:.1f} MB ({})\n",
               target.name, growth.time, growth.memory, growth.bytes, growth.cost.time_s, growth.cost.held / 1e6, file);
  }
  fmt::print("{}: {} inputs grown; powers of time {:.2f} and memory {:.2f}; {:.0f} bytes a byte\n", target.name, inputs,
             time, memory, bytes_a_byte);
  return superlinear;
}

void check_growth() {
  const std::string document = R"({"a": [{"name": "b", "n": 1}], "c": "text", "d": {"e": 2}})";
  RandomStream random(1, "growth");
  for (int i = 0; i < 200; ++i) {
    const std::string text = grown(i % 2 == 0 ? document : "a,b\n1,2\n", random)(20'000);
    expect(text.size() >= 20'000 && text.size() < 21'000, "an input of the asked length");
  }
  int read = 0;
  for (int i = 0; i < 200; ++i) {
    const auto input = grown_document(document, random);
    expect(input.has_value(), "a document");
    const Json again = Json::parse((*input)(20'000));
    if (again.is_object() && again.at("a").is_array()) ++read;
  }
  expect(read > 100, "documents that are longer in one place");
  for (const double power_of_size : {1.0, 1.2, 1.5, 2.0}) {
    const auto cost = [&](const std::string& text) {
      const double size = std::pow(static_cast<double>(text.size()) / 256'000, power_of_size);
      return Cost{0.5 * size + 0.001, 100e6 * size + 1000};
    };
    const Growth growth = growth_of(cost, repeated(
                                              "", [](std::size_t) { return "a"; }, ""));
    expect(std::abs(growth.time - power_of_size) < 0.05 && std::abs(growth.memory - power_of_size) < 0.05,
           "the power of the cost");
  }
}

}  // namespace ganymede::fuzz
