#include "report/different_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/json_value.hpp"

namespace ganymede::report {
namespace {

using InputJson = Json;
using Pointer = JsonPointer;

/// Values by their JSON pointers.
using Leaves = std::map<std::string, InputJson>;

/// Adds the values below `value`. An array without objects is one value: a longer list of regions is one difference.
void add_leaves(const InputJson& value, const std::string& pointer, Leaves& leaves) {
  const bool list_of_objects = value.is_array() && std::any_of(value.begin(), value.end(), [](const InputJson& entry) {
                                 return entry.is_structured();
                               });
  if ((!value.is_object() && !list_of_objects) || value.empty()) {
    leaves[pointer] = value;
    return;
  }
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) add_leaves(value[i], fmt::format("{}/{}", pointer, i), leaves);
  else
    for (const auto& [key, member] : value.items()) add_leaves(member, (Pointer(pointer) / key).to_string(), leaves);
}

/// The value at `pointer`; null if there is none.
const InputJson& value_at(const InputJson& document, const std::string& pointer) {
  static const InputJson kNone;
  const Pointer at(pointer);
  return document.contains(at) ? document.at(at) : kNone;
}

const char* recorded_at(const Document& document) {
  return document.kind == DocumentKind::plan ? "/provenance/request" : "/provenance/scenario";
}

/// The fields of the scenario or request. If it is not recorded in both documents, what they say of it, with pointers
/// from the document's root.
Leaves fields_of(const Document& document, bool recorded) {
  Leaves fields;
  if (recorded) {
    add_leaves(value_at(document.json(), recorded_at(document)), "", fields);
    return fields;
  }
  const auto members = document.kind == DocumentKind::plan ? std::vector{"/request"}
                                                           : std::vector{"/run", "/launch", "/goals/deadline_s",
                                                                         "/goals/budget_usd", "/provenance/seed"};
  for (const char* member : members)
    if (const InputJson& value = value_at(document.json(), member); !value.is_null()) add_leaves(value, member, fields);
  return fields;
}

/// Prices in dollars, by names of what they are for, with their pointers.
struct NamedPrice {
  std::string pointer;
  InputJson usd;
};

std::string text_of(const InputJson& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : "";
}

std::map<std::string, NamedPrice> prices_of(const Document& document) {
  std::map<std::string, NamedPrice> prices;
  std::set<std::string> several;  // a run that pays recorded prices has many for one pool: its result, not its input
  const bool plan = document.kind == DocumentKind::plan;
  const InputJson& rows = value_at(document.json(), plan ? "/simulated" : "/cost/items");
  for (std::size_t i = 0; rows.is_array() && i < rows.size(); ++i) {
    const InputJson& row = rows[i];
    if (!row.is_object()) continue;
    const InputJson& usd = value_at(row, plan ? "/price/usd_per_hour" : "/unit_price_usd");
    if (usd.is_null()) continue;
    const std::string name =
        plan ? fmt::format("{} {} {} {}, USD/h", text_of(row, "provider"), text_of(row, "region"),
                           text_of(row, "market"), text_of(row, "instance"))
             : fmt::format("{} {}, USD/{}", text_of(row, "item"), text_of(row, "pool"), text_of(row, "unit"));
    const std::string at =
        plan ? fmt::format("/simulated/{}/price/usd_per_hour", i) : fmt::format("/cost/items/{}/unit_price_usd", i);
    const auto [known, is_new] = prices.try_emplace(name, NamedPrice{at, usd});
    if (!is_new && known->second.usd != usd) several.insert(name);
  }
  for (const std::string& name : several) prices.erase(name);
  return prices;
}

/// Collects differences in the form of different_inputs().
class InputDifferences {
 public:
  InputDifferences(const Document& before, const Document& after) : before_(before.json()), after_(after.json()) {}

  void add(const char* kind, const std::string& pointer, const std::string& name, const InputJson& before,
           const InputJson& after) {
    if (before == after) return;
    found_.push_back({{"kind", kind}, {"pointer", pointer}, {"name", name}, {"before", before}, {"after", after}});
  }
  void add_value(const char* kind, const std::string& pointer, const char* name) {
    add(kind, pointer, name, value_at(before_, pointer), value_at(after_, pointer));
  }
  OrderedJson take() { return std::move(found_); }

 private:
  const InputJson& before_;
  const InputJson& after_;
  OrderedJson found_ = OrderedJson::array();
};

}  // namespace

bool records_inputs(const Document& document) { return value_at(document.json(), recorded_at(document)).is_object(); }

OrderedJson different_inputs(const Document& before, const Document& after) {
  InputDifferences found(before, after);
  const bool plan = before.kind == DocumentKind::plan;
  const bool recorded = records_inputs(before) && records_inputs(after);
  const Leaves was = fields_of(before, recorded), is = fields_of(after, recorded);
  const auto hash = [](const Document& document, const std::string& pointer) {
    const InputJson& files = value_at(document.json(), "/provenance/files");
    return files.is_object() && files.contains(pointer) ? files.at(pointer) : InputJson();
  };
  std::set<std::string> pointers;
  for (const Leaves* side : {&was, &is})
    for (const auto& [pointer, value] : *side) pointers.insert(pointer);
  const auto field = [](const Leaves& leaves, const std::string& pointer) {
    const auto value = leaves.find(pointer);
    return value == leaves.end() ? InputJson() : value->second;
  };
  for (const std::string& pointer : pointers) {
    // A file that moved is the same input.
    if (const InputJson same = hash(before, pointer); !same.is_null() && same == hash(after, pointer)) continue;
    found.add("field", pointer, plan ? "request" : "scenario", field(was, pointer), field(is, pointer));
  }
  if (const InputJson& files = value_at(before.json(), "/provenance/files"); files.is_object())
    for (const auto& [pointer, value] : files.items())
      if (const InputJson other = hash(after, pointer); !other.is_null() && field(was, pointer) == field(is, pointer)) {
        const InputJson named = field(is, pointer);
        found.add("file", pointer, named.is_string() ? named.get<std::string>() : "content", value, other);
      }
  found.add_value("option", plan ? "/request/start" : "/seeds/count", plan ? "start" : "seeds");
  const auto prices = prices_of(before);
  for (const auto& [name, price] : prices_of(after))
    if (const auto known = prices.find(name); known != prices.end())
      found.add("price", price.pointer, name, known->second.usd, price.usd);
  found.add_value("program", "/provenance/tool", "program");
  return found.take();
}

}  // namespace ganymede::report
