#include "sim/engine/platform_xml.hpp"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "common/errors.hpp"
#include "common/text.hpp"

namespace ganymede::sim {
namespace {

constexpr std::size_t kMaxLevels = 32;

/// The elements of SimGrid's DTD 4.1 that describe hosts and networks, with their attributes.
const std::map<std::string_view, std::set<std::string_view>>& known_elements() {
  static const std::set<std::string_view> between = {"src", "dst", "symmetrical"};
  static const std::set<std::string_view> between_zones = {"src", "dst", "gw_src", "gw_dst", "symmetrical"};
  static const std::map<std::string_view, std::set<std::string_view>> elements = {
      {"platform", {"version"}},
      {"zone", {"id", "routing"}},
      {"AS", {"id", "routing"}},
      {"host", {"id", "speed", "core", "coordinates", "pstate"}},
      {"cluster",
       {"id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "sharing_policy", "topology",
        "topo_parameters", "bb_bw", "bb_lat", "bb_sharing_policy", "router_id", "loopback_bw", "loopback_lat"}},
      {"cabinet", {"id", "prefix", "suffix", "radical", "speed", "bw", "lat"}},
      {"link", {"id", "bandwidth", "latency", "sharing_policy"}},
      {"backbone", {"id", "bandwidth", "latency"}},
      {"host_link", {"id", "up", "down"}},
      {"router", {"id", "coordinates"}},
      {"route", between},
      {"zoneRoute", between_zones},
      {"ASroute", between_zones},
      {"bypassRoute", between},
      {"bypassZoneRoute", between_zones},
      {"bypassASroute", between_zones},
      {"link_ctn", {"id", "direction"}},
      {"prop", {"id", "value"}}};
  return elements;
}

/// Elements that are left out with everything inside: what they say is no part of a network.
bool is_left_out(std::string_view element) {
  return element == "config" || element == "disk" || element == "storage" || element == "storage_type" ||
         element == "mount";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\n')
      out += "&#10;";
    else
      out += c;
  }
  return out;
}

/// A zone whose routes are in the file one by one, while it is read.
struct ZoneRoutes {
  std::string id, routing;
  std::size_t level = 0;
  XML_Size line = 0, column = 0;
  bool has_hosts = false;                ///< also in zones inside
  std::vector<std::string> places = {};  ///< hosts, and zones with hosts, directly inside
  std::set<std::pair<std::string, std::string>> routes = {};
};

/// The places that routes lead to from the first of them, forwards or against their direction.
std::set<std::string> reached(const ZoneRoutes& zone, bool forwards) {
  std::map<std::string, std::vector<std::string>> next;
  for (const auto& [from, to] : zone.routes) next[forwards ? from : to].push_back(forwards ? to : from);
  std::set<std::string> seen = {zone.places.front()};
  std::vector<std::string> open = {zone.places.front()};
  while (!open.empty()) {
    const std::string at = open.back();
    open.pop_back();
    for (const std::string& place : next[at])
      if (seen.insert(place).second) open.push_back(place);
  }
  return seen;
}

/// Two places of the zone between which its routes do not lead; nothing if there are none.
std::optional<std::pair<std::string, std::string>> unrouted(const ZoneRoutes& zone) {
  if (zone.places.size() < 2) return std::nullopt;
  if (zone.routing == "Full") {
    for (const std::string& from : zone.places)
      for (const std::string& to : zone.places)
        if (from != to && zone.routes.count({from, to}) == 0) return std::pair(from, to);
  } else if (zone.routing == "Floyd" || zone.routing.starts_with("Dijkstra")) {
    const auto ahead = reached(zone, true), behind = reached(zone, false);
    for (const std::string& place : zone.places) {
      if (ahead.count(place) == 0) return std::pair(zone.places.front(), place);
      if (behind.count(place) == 0) return std::pair(place, zone.places.front());
    }
  }
  return std::nullopt;
}

/// True if the text is a number of at least `least` with a unit, or several that commas separate: "1Gf,0.5Gf".
bool are_quantities(std::string_view text, double least) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view part = text.substr(0, text.find(','));
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || !std::isfinite(value) || value < least) return false;
    if (part.size() == text.size()) return true;
    text.remove_prefix(part.size() + 1);
  }
}

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)), parser_(XML_ParserCreate(nullptr)) {
    if (parser_ == nullptr) throw Failure("cannot make a parser of XML");
    XML_SetUserData(parser_, this);
    XML_SetElementHandler(
        parser_,
        [](void* self, const XML_Char* name, const XML_Char** attributes) {
          static_cast<Reader*>(self)->guard([&](Reader& reader) { reader.open(name, attributes); });
        },
        [](void* self, const XML_Char* name) {
          static_cast<Reader*>(self)->guard([&](Reader& reader) { reader.close(name); });
        });
    XML_SetDoctypeDeclHandler(
        parser_,
        [](void* self, const XML_Char*, const XML_Char* system, const XML_Char*, int internal) {
          static_cast<Reader*>(self)->guard([&](Reader& reader) {
            if (internal != 0) reader.fail("the document type declares entities or elements, which are not read");
            if (system != nullptr && !std::string_view(system).ends_with("simgrid.dtd"))
              reader.fail(
                  fmt::format("found the document type \"{}\", expected that of SimGrid 4.1, "
                              "https://simgrid.org/simgrid.dtd; no other file is read",
                              system));
          });
        },
        nullptr);
    XML_SetSkippedEntityHandler(parser_, [](void* self, const XML_Char* name, int) {
      static_cast<Reader*>(self)->guard([&](Reader& reader) { reader.fail(fmt::format("unknown entity &{};", name)); });
    });
  }
  ~Reader() { XML_ParserFree(parser_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  PlatformXml read(const std::string& content) {
    out_.text =
        "<?xml version=\"1.0\"?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">";  // SimGrid wants it
    content_ = content;
    const auto status = XML_Parse(parser_, content.data(), static_cast<int>(content.size()), 1);
    if (error_) std::rethrow_exception(error_);
    if (status != XML_STATUS_OK) fail(XML_ErrorString(XML_GetErrorCode(parser_)));
    out_.text += "\n";
    return std::move(out_);
  }

 private:
  using Attributes = std::map<std::string_view, std::string_view>;

  [[noreturn]] void fail(const std::string& message) const {
    throw ConfigError(fmt::format("{}:{}:{}: {}", file_, XML_GetCurrentLineNumber(parser_),
                                  XML_GetCurrentColumnNumber(parser_) + 1, message));
  }

  /// Runs a callback; its exception ends the parsing, because it must not pass through the parser's own code.
  template <class Callback>
  void guard(Callback&& callback) {
    if (error_) return;
    try {
      callback(*this);
    } catch (...) {
      error_ = std::current_exception();
      XML_StopParser(parser_, XML_FALSE);
    }
  }

  void open(const std::string& name, const XML_Char** attributes) {
    open_.push_back(name);
    if (open_.size() > kMaxLevels) fail(fmt::format("more than {} levels of elements", kMaxLevels));
    if (open_.size() == 1 && name != "platform") fail(fmt::format("found <{}>, expected <platform>", name));
    if (left_out_below_ > 0) return;
    if (is_left_out(name)) {
      left_out_below_ = open_.size();
      out_.left_out.push_back(fmt::format("<{}> in line {}", name, XML_GetCurrentLineNumber(parser_)));
      return;
    }
    refuse_entities();
    const Attributes values = known(name, attributes);
    check_values(name, values);
    note_place(name, values);
    if (name == "host") add_host(std::string(value_of(values, "id")));
    if (name == "cluster" || name == "cabinet") add_cluster(values);
    if (name == "prop" && open_.size() == 3 && open_[1] != "host")
      out_.properties.emplace_back(value_of(values, "id"), value_of(values, "value"));
    // SimGrid's messages name lines, so each element stays on its own.
    for (; line_ < XML_GetCurrentLineNumber(parser_); ++line_) out_.text += '\n';
    out_.text += fmt::format("<{}", name);
    for (const auto& [key, value] : values) out_.text += fmt::format(" {}=\"{}\"", key, escaped(value));
    out_.text += ">";
  }

  void close(const std::string& name) {
    const bool kept = left_out_below_ == 0;
    if (open_.size() == left_out_below_) left_out_below_ = 0;
    if (!zones_.empty() && zones_.back().level == open_.size()) close_zone();
    open_.pop_back();
    if (kept) out_.text += fmt::format("</{}>", name);
  }

  /// The attributes of an element that is known with all of them.
  Attributes known(const std::string& name, const XML_Char** attributes) const {
    const auto element = known_elements().find(name);
    if (element == known_elements().end()) {
      std::vector<std::string> names;
      for (const auto& [other, unused] : known_elements()) names.emplace_back(other);
      const auto close = nearest(name, names);
      fail(fmt::format("found <{}>, which says nothing of a network of constant speed{}", name,
                       close ? fmt::format("; did you mean <{}>?", *close) : ""));
    }
    Attributes values;
    for (; *attributes != nullptr; attributes += 2) {
      if (element->second.count(attributes[0]) == 0)
        fail(fmt::format("<{}> has {}=\"{}\", which cannot be taken over: hosts and links have constant speeds here",
                         name, attributes[0], attributes[1]));
      values[attributes[0]] = attributes[1];
    }
    static const std::vector<std::string> routings = {"Full",    "Floyd", "Dijkstra", "DijkstraCache",
                                                      "Cluster", "None",  "Vivaldi"};
    if (const auto routing = values.find("routing");
        routing != values.end() && std::find(routings.begin(), routings.end(), routing->second) == routings.end())
      fail(fmt::format("found routing=\"{}\", expected {}", routing->second, list_of(routings)));
    for (const char* policy : {"sharing_policy", "bb_sharing_policy"})
      if (value_of(values, policy) == "WIFI") fail("wireless links cannot be taken over");
    return values;
  }

  /// The parser drops entities that it does not know from values, because the document type might declare them.
  void refuse_entities() const {
    const auto start = static_cast<std::size_t>(std::max<XML_Index>(XML_GetCurrentByteIndex(parser_), 0));
    const std::string_view tag =
        content_.substr(std::min(start, content_.size()), static_cast<std::size_t>(XML_GetCurrentByteCount(parser_)));
    for (std::size_t at = tag.find('&'); at != std::string_view::npos; at = tag.find('&', at + 1)) {
      const std::string_view entity = tag.substr(at, tag.find(';', at) - at + 1);
      static const std::set<std::string_view> predefined = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
      if (entity.size() > 1 && std::isalpha(static_cast<unsigned char>(entity[1])) != 0 &&
          predefined.count(entity) == 0)
        fail(fmt::format("unknown entity {}", entity));
    }
  }

  void check_values(const std::string& name, const Attributes& values) const {
    if (name == "platform") {
      const std::string_view version = value_of(values, "version");
      if (version != "4" && version != "4.0" && version != "4.1")
        fail(
            fmt::format("found version=\"{}\", expected \"4.1\"; SimGrid's program simgrid_update_xml converts files "
                        "of older versions",
                        version));
    }
    for (const char* key : {"speed", "bandwidth", "bw", "bb_bw", "loopback_bw"})
      if (const auto at = values.find(key); at != values.end() && !are_quantities(at->second, 1e-300))
        fail(fmt::format("found {}=\"{}\", expected a number above 0 with its unit", key, at->second));
    for (const char* key : {"latency", "lat", "bb_lat", "loopback_lat"})
      if (const auto at = values.find(key); at != values.end() && !are_quantities(at->second, 0))
        fail(fmt::format("found {}=\"{}\", expected a number from 0 on with its unit", key, at->second));
  }

  /// Notes hosts, links, zones and routes, of which no two may have one name.
  void note_place(const std::string& name, const Attributes& values) {
    const std::string id(value_of(values, "id"));
    const bool zone = name == "zone" || name == "AS";
    if (name == "link" && !links_.insert(id).second) fail(fmt::format("a second link \"{}\"", id));
    if (!zones_.empty() && (name == "host" || name == "cluster")) {
      zones_.back().places.push_back(id);
      zones_.back().has_hosts = true;
    }
    if (!zones_.empty() && name == "cabinet") zones_.back().has_hosts = true;
    if (name == "host" && !zones_.empty() && zones_.back().routing == "Vivaldi" && values.count("coordinates") == 0)
      fail(fmt::format("the host {} has no coordinates, which routing=\"Vivaldi\" needs", id));
    if (name.starts_with("bypass")) bypassed_ = true;
    if (!zones_.empty() && (name == "route" || name == "zoneRoute" || name == "ASroute")) {
      const std::string from(value_of(values, "src")), to(value_of(values, "dst"));
      zones_.back().routes.emplace(from, to);
      if (value_of(values, "symmetrical") != "NO" && value_of(values, "symmetrical") != "no")
        zones_.back().routes.emplace(to, from);
    }
    if (zone)
      zones_.push_back({id, std::string(value_of(values, "routing")), open_.size(), XML_GetCurrentLineNumber(parser_),
                        XML_GetCurrentColumnNumber(parser_) + 1});
  }

  /// Throws if the zone lacks a route, at which SimGrid ends the process.
  void close_zone() {
    const ZoneRoutes zone = std::move(zones_.back());
    zones_.pop_back();
    if (const auto pair = unrouted(zone); pair && !bypassed_)
      throw ConfigError(fmt::format("{}:{}:{}: the zone {} has no route from {} to {}; expected one for each pair",
                                    file_, zone.line, zone.column, zone.id, pair->first, pair->second));
    if (zones_.empty() || !zone.has_hosts) return;
    zones_.back().places.push_back(zone.id);
    zones_.back().has_hosts = true;
  }

  static std::string_view value_of(const Attributes& values, std::string_view key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string_view{} : found->second;
  }

  void add_host(std::string name) {
    if (out_.hosts.size() >= kMaxImportedHosts) fail(fmt::format("more than {} hosts", kMaxImportedHosts));
    if (!names_.insert(name).second) fail(fmt::format("a second host \"{}\"", name));
    out_.hosts.push_back(std::move(name));
  }

  /// Adds the hosts that a radical such as "0-3,8" numbers.
  void add_cluster(const Attributes& values) {
    const std::string_view radical = value_of(values, "radical");
    for (std::size_t at = 0; at <= radical.size();) {
      const std::size_t end = std::min(radical.find(',', at), radical.size());
      const std::string_view part = radical.substr(at, end - at);
      const std::size_t dash = part.find('-');
      const int first = number_of(part.substr(0, dash), radical);
      const int last = dash == std::string_view::npos ? first : number_of(part.substr(dash + 1), radical);
      if (last < first) fail(fmt::format("found radical=\"{}\", whose range runs backwards", radical));
      for (int number = first; number <= last; ++number)
        add_host(fmt::format("{}{}{}", value_of(values, "prefix"), number, value_of(values, "suffix")));
      at = end + 1;
    }
  }

  int number_of(std::string_view text, std::string_view radical) const {
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < 0)
      fail(fmt::format("found radical=\"{}\", expected numbers and ranges as 0-3,8", radical));
    return number;
  }

  std::string file_;
  std::string_view content_;
  XML_Parser parser_;
  std::exception_ptr error_;
  PlatformXml out_;
  std::vector<std::string> open_;  // the elements around the current place
  std::vector<ZoneRoutes> zones_;  // the zones around the current place
  std::set<std::string> names_, links_;
  bool bypassed_ = false;           // routes may stand in other zones than their ends
  std::size_t left_out_below_ = 0;  // the level of the element that is left out; 0: none
  XML_Size line_ = 1;               // the line of the end of out_.text
};

}  // namespace

PlatformXml read_platform_xml(const std::string& file, const std::string& content) {
  constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
  if (content.size() > kMaxBytes) throw ConfigError(fmt::format("{}: larger than 256 MiB", file));
  return Reader(file).read(content);
}

}  // namespace ganymede::sim
