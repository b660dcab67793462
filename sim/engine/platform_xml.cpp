#include "sim/engine/platform_xml.hpp"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "common/errors.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "sim/engine/platform_zones.hpp"

namespace ganymede::sim {
namespace {

constexpr std::size_t kMaxLevels = 32;
/// SimGrid takes some seconds and 200 MB for so many.
constexpr std::size_t kMaxLoadedHosts = 65536;

/// The elements of SimGrid's DTD 4.1 that describe hosts and networks, with their attributes.
const std::map<std::string_view, std::set<std::string_view>>& known_elements() {
  static const std::set<std::string_view> between = {"src", "dst", "symmetrical"};
  static const std::set<std::string_view> between_zones = {"src", "dst", "gw_src", "gw_dst", "symmetrical"};
  static const std::map<std::string_view, std::set<std::string_view>> elements = {
      {"platform", {"version"}},
      {"zone", {"id", "routing"}},
      {"AS", {"id", "routing"}},
      {"host", {"id", "speed", "core", "coordinates", "pstate"}},
      {"peer", {"id", "speed", "bw_in", "bw_out", "coordinates", "lat"}},
      {"cluster",
       {"id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "sharing_policy", "topology",
        "topo_parameters", "bb_bw", "bb_lat", "bb_sharing_policy", "router_id", "loopback_bw", "loopback_lat",
        "limiter_link"}},
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

/// Elements that are left out with everything inside, and why.
std::string_view why_left_out(std::string_view element) {
  static const std::map<std::string_view, std::string_view> reasons = {
      {"config", "it is no part of the network"},         {"disk", "it is no part of the network"},
      {"storage", "it is no part of the network"},        {"storage_type", "it is no part of the network"},
      {"mount", "it is no part of the network"},          {"actor", "programs are no part of the network"},
      {"process", "programs are no part of the network"}, {"trace", "speeds are those at the start"},
      {"trace_connect", "speeds are those at the start"}, {"random", "speeds are those at the start"}};
  const auto found = reasons.find(element);
  return found == reasons.end() ? std::string_view{} : found->second;
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
    const std::size_t start = start_of(content);
    skipped_lines_ =
        static_cast<XML_Size>(std::count(content.begin(), content.begin() + static_cast<long>(start), '\n'));
    content_ = std::string_view(content).substr(start);
    const auto status = XML_Parse(parser_, content_.data(), static_cast<int>(content_.size()), 1);
    if (error_) std::rethrow_exception(error_);
    if (status != XML_STATUS_OK) fail(XML_ErrorString(XML_GetErrorCode(parser_)));
    out_.text += "\n";
    for (const auto& [what, found] : left_out_)
      out_.notes.push_back(fmt::format("{} in line {}{} was left out: {}", what, found.line,
                                       found.count > 1 ? fmt::format(" (and {} more)", found.count - 1) : "",
                                       found.reason));
    out_.joined = [zones = std::make_shared<PlatformZones>(std::move(zones_)), places = std::move(host_places_)](
                      std::size_t from, std::size_t to) { return zones->joined(places[from], places[to]); };
    return std::move(out_);
  }

 private:
  using Attributes = std::map<std::string_view, std::string_view>;

  /// SimGrid reads on where blanks and comments come before the XML declaration; the parser would not.
  static std::size_t start_of(std::string_view content) {
    const std::size_t declaration = std::min(content.find("<?xml"), content.size());
    std::size_t at = 0;
    while (at < declaration) {
      if (std::isspace(static_cast<unsigned char>(content[at])) != 0)
        ++at;
      else if (content.substr(at).starts_with("<!--") && content.find("-->", at) != std::string_view::npos)
        at = content.find("-->", at) + 3;
      else
        return 0;
    }
    return at < content.size() ? at : 0;
  }

  XML_Size line() const { return XML_GetCurrentLineNumber(parser_) + skipped_lines_; }

  void leave_out(const std::string& what, std::string_view reason) {
    ++left_out_.try_emplace(what, LeftOut{line(), 0, reason}).first->second.count;
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw ConfigError(fmt::format("{}:{}:{}: {}", file_, line(), XML_GetCurrentColumnNumber(parser_) + 1, message));
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
    if (const std::string_view reason = why_left_out(name); !reason.empty()) {
      left_out_below_ = open_.size();
      leave_out(fmt::format("<{}>", name), reason);
      return;
    }
    refuse_entities();
    const Attributes values = known(name, attributes);
    check_values(name, values);
    note_place(name, values);
    if (name == "prop" && open_.size() == 3 && open_[1] != "host")
      out_.properties.emplace_back(value_of(values, "id"), value_of(values, "value"));
    // SimGrid's messages name lines, so each element stays on its own.
    for (; line_ < line(); ++line_) out_.text += '\n';
    if (value_of(values, "sharing_policy") == "WIFI") add_wireless(values);
    out_.text += fmt::format("<{}", name);
    for (const auto& [key, value] : values) out_.text += fmt::format(" {}=\"{}\"", key, escaped(value));
    out_.text += ">";
  }

  /// A wireless link has a bandwidth for each distance, of which SimGrid tells none.
  void add_wireless(const Attributes& link) {
    const std::string id(value_of(link, "id"));
    const std::string_view rates = value_of(link, "bandwidth");
    std::string first(rates.substr(0, rates.find(',')));
    for (const auto& [unit, ours] : {std::pair{"bps", "bit/s"}, {"Bps", "B/s"}})
      if (first.ends_with(unit)) first.replace(first.size() - 3, 3, ours);
    try {
      out_.wireless[id] = parse_quantity<BytesPerSecond>(first);
    } catch (const std::invalid_argument& error) {
      fail(fmt::format("the wireless link {} has the bandwidth \"{}\": {}", id, rates, error.what()));
    }
    if (rates.find(',') != rates.npos)
      leave_out(fmt::format("all but the first bandwidth of the wireless link {}", id),
                "its hosts are taken to be near");
  }

  void close(const std::string& name) {
    const bool kept = left_out_below_ == 0;
    if (open_.size() == left_out_below_) left_out_below_ = 0;
    if (kept && (name == "zone" || name == "AS")) zones_.close();
    open_.pop_back();
    if (kept) out_.text += fmt::format("</{}>", name);
  }

  /// The attributes of an element that is known with all of them.
  Attributes known(const std::string& name, const XML_Char** attributes) {
    const auto element = known_elements().find(name);
    if (element == known_elements().end()) {
      std::vector<std::string> names;
      for (const auto& [other, unused] : known_elements()) names.emplace_back(other);
      const auto close = nearest(name, names);
      fail(fmt::format("found <{}>, which SimGrid 3.32 does not read{}", name,
                       close ? fmt::format("; did you mean <{}>?", *close) : ""));
    }
    Attributes values;
    for (; *attributes != nullptr; attributes += 2) {
      if (std::string_view(attributes[0]).ends_with("_file")) {
        leave_out(fmt::format("{} of <{}>", attributes[0], name),
                  "speeds are those at the start, and all is available");
        continue;
      }
      if (element->second.count(attributes[0]) == 0)
        fail(fmt::format("<{}> has {}=\"{}\", which SimGrid 3.32 does not know", name, attributes[0], attributes[1]));
      values[attributes[0]] = attributes[1];
    }
    static const std::vector<std::string> routings = {"Full", "Floyd",   "Dijkstra", "DijkstraCache", "Cluster",
                                                      "None", "Vivaldi", "Wifi",     "WIFI"};
    if (const auto routing = values.find("routing");
        routing != values.end() && std::find(routings.begin(), routings.end(), routing->second) == routings.end())
      fail(fmt::format("found routing=\"{}\", expected {}", routing->second, list_of(routings)));
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
    for (const char* key : {"speed", "bandwidth", "bw", "bb_bw", "loopback_bw", "bw_in", "bw_out"})
      if (const auto at = values.find(key); at != values.end() && !are_quantities(at->second, 1e-300))
        fail(fmt::format("found {}=\"{}\", expected a number above 0 with its unit", key, at->second));
    for (const char* key : {"latency", "lat", "bb_lat", "loopback_lat"})
      if (const auto at = values.find(key); at != values.end() && !are_quantities(at->second, 0))
        fail(fmt::format("found {}=\"{}\", expected a number from 0 on with its unit", key, at->second));
  }

  /// Notes hosts, links, zones and routes, of which no two may have one name.
  void note_place(const std::string& name, const Attributes& values) {
    const auto text = [&](std::string_view key) { return std::string(value_of(values, key)); };
    const std::string id = text("id");
    if (name == "link" && !links_.insert(id).second) fail(fmt::format("a second link \"{}\"", id));
    if (name == "host" && zones_.routing() == "Vivaldi" && values.count("coordinates") == 0)
      fail(fmt::format("the host {} has no coordinates, which routing=\"Vivaldi\" needs", id));
    if (name == "host" || name == "peer") add_host(id, zones_.add(id, name == "host"));
    if (name == "host_link") zones_.set_link(id);
    if (name == "router") zones_.add(id);
    if (name == "zone" || name == "AS") zones_.open(id, text("routing"));
    if (name == "cluster") add_cluster(values, zones_.add(id));
    if (name == "cabinet") add_cluster(values, std::nullopt);
    if (name.starts_with("bypass")) zones_.add_bypass(text("src"), text("dst"));
    if (name == "route" || name == "zoneRoute" || name == "ASroute")
      zones_.add_route({text("src"), text("dst"), text("gw_src"), text("gw_dst"),
                        text("symmetrical") != "NO" && text("symmetrical") != "no"});
  }

  static std::string_view value_of(const Attributes& values, std::string_view key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string_view{} : found->second;
  }

  void add_host(std::string name, int place) {
    if (out_.hosts.size() >= kMaxLoadedHosts) fail(fmt::format("more than {} hosts", kMaxLoadedHosts));
    if (!names_.insert(name).second) fail(fmt::format("a second host \"{}\"", name));
    out_.hosts.push_back(std::move(name));
    host_places_.push_back(place);
  }

  /// Adds the hosts that a radical such as "0-3,8" numbers, at the place of their cluster if they have one.
  void add_cluster(const Attributes& values, std::optional<int> place) {
    const std::string_view radical = value_of(values, "radical");
    for (std::size_t at = 0; at <= radical.size();) {
      const std::size_t end = std::min(radical.find(',', at), radical.size());
      const std::string_view part = radical.substr(at, end - at);
      const std::size_t dash = part.find('-');
      const int first = number_of(part.substr(0, dash), radical);
      const int last = dash == std::string_view::npos ? first : number_of(part.substr(dash + 1), radical);
      if (last < first) fail(fmt::format("found radical=\"{}\", whose range runs backwards", radical));
      for (int number = first; number <= last; ++number) {
        const std::string name = fmt::format("{}{}{}", value_of(values, "prefix"), number, value_of(values, "suffix"));
        add_host(name, place ? *place : zones_.add(name));
      }
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
  PlatformZones zones_;
  std::vector<int> host_places_;  // in zones_
  std::set<std::string> names_, links_;
  struct LeftOut {
    XML_Size line;  // of the first
    int count;
    std::string_view reason;
  };
  std::map<std::string, LeftOut> left_out_;
  std::size_t left_out_below_ = 0;  // the level of the element that is left out; 0: none
  XML_Size line_ = 1;               // the line of the end of out_.text
  XML_Size skipped_lines_ = 0;      // before what the parser sees
};

}  // namespace

PlatformXml read_platform_xml(const std::string& file, const std::string& content) {
  constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
  if (content.size() > kMaxBytes) throw ConfigError(fmt::format("{}: larger than 256 MiB", file));
  return Reader(file).read(content);
}

}  // namespace ganymede::sim
