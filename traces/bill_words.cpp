#include "traces/bill_words.hpp"

#include <algorithm>
#include <cctype>

#include "common/dates.hpp"
#include "common/plain_text.hpp"

namespace ganymede::traces {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

std::optional<std::int64_t> time_of_bill(std::string text) {
  if (text.size() < 16) return std::nullopt;
  if (text[10] == ' ') text[10] = 'T';
  std::size_t zone = std::min(text.find_first_not_of("0123456789:", 11), text.size());
  if (zone < text.size() && text[zone] == '.') {
    const std::size_t fraction = zone;
    zone = std::min(text.find_first_not_of("0123456789", fraction + 1), text.size());
    text.erase(fraction, zone - fraction);
    zone = fraction;
  }
  const std::string stated = text.substr(zone);
  return parse_time(text.substr(0, zone) + (stated.empty() || stated == " UTC" ? "Z" : stated));
}

bool has_word(const std::string& text, const std::string& word) {
  const auto joined = [](std::string of) {
    std::replace_if(
        of.begin(), of.end(), [](char c) { return c == '-' || c == '_' || c == '.'; }, ' ');
    return of;
  };
  const std::string all = joined(text), wanted = joined(word);
  const auto is_inside = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
  };
  for (std::size_t at = all.find(wanted); at != std::string::npos; at = all.find(wanted, at + 1)) {
    const std::size_t end = at + word.size();
    const bool is_version =
        all.compare(end, 2, " v") == 0 && end + 2 < all.size() && all[end + 2] >= '0' && all[end + 2] <= '9';
    const bool more =
        is_version || (end < text.size() && is_inside(text[end]) && (text[end] != '.' || end + 1 < text.size()));
    if ((at == 0 || !is_inside(text[at - 1])) && !more) return true;
  }
  return false;
}

double hours_of(std::string_view unit) {
  double factor = 1;
  if (const std::size_t end = unit.find_first_not_of("0123456789."); end != 0 && end != std::string_view::npos) {
    factor = parse_number<double>(std::string(unit.substr(0, end))).value_or(0);
    unit.remove_prefix(end);
  }
  unit.remove_prefix(std::min(unit.find_first_not_of(" /"), unit.size()));
  for (const std::string_view machine : {"instance", "machine", "node", "server", "vm"})
    if (unit.starts_with(machine) && unit.size() > machine.size() && has(" -", unit.substr(machine.size(), 1))) {
      unit.remove_prefix(machine.size() + 1);
      break;
    }
  struct Time {
    const char* name;
    double hours;
  };
  constexpr Time kTimes[] = {{"h", 1},
                             {"hr", 1},
                             {"hrs", 1},
                             {"hour", 1},
                             {"hours", 1},
                             {"min", 1. / 60},
                             {"mins", 1. / 60},
                             {"minute", 1. / 60},
                             {"minutes", 1. / 60},
                             {"s", 1. / 3600},
                             {"sec", 1. / 3600},
                             {"secs", 1. / 3600},
                             {"second", 1. / 3600},
                             {"seconds", 1. / 3600}};
  for (const Time& time : kTimes)
    if (unit == time.name) return factor * time.hours;
  return 0;
}

std::string kind_of_charge(const ChargeWords& of) {
  struct Rule {
    const char* word;
    const char* item;
  };
  constexpr Rule kKinds[] = {{"tax", "tax"},
                             {"credit", "credit"},
                             {"refund", "credit"},
                             {"discount", "credit"},
                             {"adjustment", "credit"},
                             {"negation", "commitment"},
                             {"purchase", "commitment"},
                             {"rifee", "commitment"},
                             {"savingsplan", "commitment"},
                             {"fee", "fee"}};
  // Hours that a commitment covers are used as others are, and no discount.
  if (of.kind != "discountedusage" && of.kind != "savingsplancoveredusage")
    for (const Rule& rule : kKinds)
      if (has(of.kind, rule.word)) return rule.item;
  constexpr Rule kUsages[] = {{"boxusage", "instance-hours"},
                              {"spotusage", "instance-hours"},
                              {"dedicatedusage", "instance-hours"},
                              {"reservation", "instance-hours"},
                              {"loadbalancer", "load balancer"},
                              {"lcuusage", "load balancer"},
                              {"datatransfer", "data transfer"},
                              {"natgateway", "data transfer"},
                              {"out-bytes", "data transfer"},
                              {"in-bytes", "data transfer"},
                              {"request", "requests"},
                              {"ebs:", "storage"},
                              {"timedstorage", "storage"},
                              {"snapshot", "storage"}};
  for (const Rule& rule : kUsages)
    if (has(of.usage, rule.word)) return rule.item;
  const std::string service = of.category + " " + of.service;
  if (has(of.unit, "request")) return "requests";
  constexpr Rule kServices[] = {{"load balanc", "load balancer"},
                                {"kubernetes", "control plane"},
                                {"transfer", "data transfer"},
                                {"bandwidth", "data transfer"},
                                {"networking", "data transfer"},
                                {"network", "data transfer"},
                                {"storage", "storage"},
                                {"support", "fee"},
                                {"virtual machine", "instance-hours"},
                                {"compute", "instance-hours"},
                                {"ec2", "instance-hours"},
                                {"gpu", "instance-hours"}};
  for (const Rule& rule : kServices)
    if (has(service, rule.word)) return rule.item;
  return "other";
}

std::string_view first_row(std::string_view text) {
  bool quoted = false, any = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted && any) return text.substr(0, i + 1);
    any = any || (text[i] != '\n' && text[i] != '\r');
  }
  return text;
}

}  // namespace ganymede::traces
