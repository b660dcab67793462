#include "sim/engine/platform_xml.hpp"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>
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
        "topo_parameters", "bb_bw", "bb_lat", "bb_sharing_policy", "router_id", "limiter_link", "loopback_bw",
        "loopback_lat"}},
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
        [](void* self, const XML_Char*, const XML_Char*, const XML_Char*, int internal) {
          static_cast<Reader*>(self)->guard([&](Reader& reader) {
            if (internal != 0) reader.fail("the document type declares entities or elements, which are not read");
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
    const Attributes values = known(name, attributes);
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

  static std::string_view value_of(const Attributes& values, std::string_view key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string_view{} : found->second;
  }

  void add_host(std::string name) {
    if (out_.hosts.size() >= kMaxImportedHosts) fail(fmt::format("more than {} hosts", kMaxImportedHosts));
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
  XML_Parser parser_;
  std::exception_ptr error_;
  PlatformXml out_;
  std::vector<std::string> open_;   // the elements around the current place
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
