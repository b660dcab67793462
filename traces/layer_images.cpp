#include "traces/layer_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"

namespace ganymede::traces {
namespace {
constexpr int kMaxImage = 65536;
constexpr const char *kImage = "image", *kBlocks = "blocks";

bool is_layer(const JsonNode& node) { return node.is_object() && node.value().contains("kind"); }

/// True if the layer says that it is not there for images of that size.
bool is_absent(const JsonNode& node, std::int64_t side) {
  if (!is_layer(node) || !node.value().contains(kImage)) return false;
  JsonObject in(node.child(kImage));
  const auto from = in.optional("from"), to = in.optional("to");
  if (!from && !to) in.node().fail("expected \"from\", \"to\" or both: the sizes for which the layer is there");
  in.finish();
  const auto least = from ? from->as_integer(1, kMaxImage) : 1;
  const auto most = to ? to->as_integer(least, kMaxImage) : kMaxImage;
  return side < least || side > most;
}

/// What the layers may name: numbers, and blocks of layers whose numbers are given where they are named.
struct Scope {
  LayerSettings numbers;
  std::optional<JsonNode> blocks;
  int* named;     ///< how many blocks were named so far
  int depth = 0;  ///< of blocks in blocks
};

/// The number that "image", "image/32" or "image*2" stands for; nothing for a text that names no setting.
std::optional<std::int64_t> number_of(const JsonNode& node, const LayerSettings& settings) {
  const auto text = node.value().get<std::string>();
  const std::size_t sign = text.find_first_of("/*");
  const auto known = settings.find(text.substr(0, sign));
  if (known == settings.end()) return {};
  if (sign == std::string::npos) return known->second;
  const std::int64_t factor = parse_number<std::int64_t>(std::string_view(text).substr(sign + 1)).value_or(0);
  const bool divides = text[sign] == '/';
  if (factor < 1 || factor > kMaxImage || (divides && known->second % factor != 0))
    node.expected(fmt::format("a {} of {} behind \"{}\"", divides ? "divisor" : "multiple", known->second,
                              text.substr(0, sign + 1)));
  return divides ? known->second / factor : known->second * factor;
}

std::int64_t setting(const JsonNode& node, const LayerSettings& settings, const char* name) {
  const auto known = settings.find(name);
  if (known == settings.end()) node.fail(fmt::format("needs the setting \"{}\"", name));
  return known->second;
}

Json resolved(const JsonNode& node, const Scope& scope);

Json as_one(Json layers) { return {{"kind", "repeat"}, {"times", 1}, {"layers", std::move(layers)}}; }

/// The layers of a block that is named with its numbers, as one layer that holds them.
Json block(const JsonNode& node, const Scope& scope) {
  constexpr int kDeepest = 16, kMostNamed = 10'000;
  JsonObject in(node);
  in.required("kind");
  std::vector<std::string> known;
  if (scope.blocks)
    for (const auto& [name, layers] : scope.blocks->as_map()) known.push_back(name);
  const std::string name = in.required("name").as_choice(known);
  Scope inner = scope;
  if (++inner.depth > kDeepest) node.fail(fmt::format("blocks lie more than {} deep in each other", kDeepest));
  if (++*scope.named > kMostNamed) node.fail(fmt::format("more than {} blocks", kMostNamed));
  for (const auto& [key, value] : node.as_map()) {
    if (key == "kind" || key == "name" || key == "about" || key == kImage) continue;
    const auto number = value.is_string() ? number_of(value, scope.numbers) : value.as_integer(0, 1 << 24);
    if (!number) value.expected("a number, or the name of one");
    inner.numbers[key] = *number;
  }
  return as_one(resolved(scope.blocks->child(name), inner));
}

/// The layers of a range of resolutions, up or down, as one layer that holds them.
Json resolutions(const JsonNode& node, const Scope& scope) {
  const LayerSettings& settings = scope.numbers;
  JsonObject in(node);
  in.required("kind");
  const auto side_of = [&](const char* key) {
    const JsonNode at = in.required(key);
    if (!at.is_string()) return at.as_integer(1, kMaxImage);
    const auto side = number_of(at, settings);
    if (!side) at.expected("a side, or a setting");
    return *side;
  };
  const std::int64_t from = side_of("from"), to = side_of("to");
  const JsonNode layers = in.required("layers");
  in.finish();
  const std::int64_t base = setting(node, settings, "channel_base"), most = setting(node, settings, "channel_max");
  const std::int64_t image = setting(node, settings, "image");
  const auto half = settings.find("fp16_resolutions");
  const std::int64_t least_half =
      half == settings.end() ? 2 * image : std::max<std::int64_t>(2 * image >> half->second, 8);
  Json all = Json::array();
  // A range that is written upwards and is empty for small images has no layers.
  const bool up = node.child("from").is_number();
  for (std::int64_t side = from; up ? side <= to : side >= to; side = up ? 2 * side : side / 2) {
    Scope here = scope;
    here.numbers["resolution"] = side;
    here.numbers["width"] = std::min(base / side, most), here.numbers["below"] = std::min(2 * base / side, most);
    Json one = as_one(resolved(layers, here));
    if (side >= least_half) one["precision"] = "fp16";
    all.push_back(std::move(one));
    if (side <= 1) break;
  }
  return as_one(std::move(all));
}

Json alias_free(const JsonNode& node, const LayerSettings& settings) {
  JsonObject in(node);
  in.required("kind"), in.optional(kImage);
  for (const char* name : {"channel_base", "channel_max", "fp16_resolutions"}) setting(node, settings, name);
  AliasFree of;
  of.kernel = static_cast<int>(in.required("kernel").as_integer(1, 3));
  const auto number = [&](const char* name, int& place, int low, int high) {
    if (const auto value = in.optional(name)) place = static_cast<int>(value->as_integer(low, high));
  };
  number("scale", of.scale, 1, 16);
  number("layers", of.layers, 3, 64);
  number("grown_from", of.grown_from, 4, kMaxImage);
  number("head_layers", of.head_layers, 3, 64);
  of.stem = optional_flag(in, "stem", false);
  in.finish();
  const std::int64_t image = settings.at(kImage);
  if (of.grown_from > 0 &&
      (image % of.grown_from != 0 || !std::has_single_bit(static_cast<std::uint64_t>(image / of.grown_from))))
    node.fail(fmt::format("an image of {} was asked for, expected {} times a power of two", image, of.grown_from));
  return alias_free_layers(settings, of);
}

Json resolved(const JsonNode& node, const Scope& scope) {
  const LayerSettings& settings = scope.numbers;
  if (node.is_string()) {
    const auto number = number_of(node, settings);
    return number ? Json(*number) : node.value();
  }
  if (node.value().is_array()) {
    Json all = Json::array();
    for (const JsonNode& entry : node.as_array())
      all.push_back(settings.contains(kImage) && is_absent(entry, settings.at(kImage)) ? Json()
                                                                                       : resolved(entry, scope));
    return all;
  }
  if (!node.is_object()) return node.value();
  const auto kind = node.value().find("kind");
  if (kind != node.value().end() && *kind == "block") return block(node, scope);
  if (kind != node.value().end() && *kind == "resolutions") return resolutions(node, scope);
  if (kind != node.value().end() && *kind == "alias-free") return as_one(alias_free(node, settings));
  Json all = Json::object();
  for (const auto& [key, member] : node.as_map()) {
    if (key == kImage && is_layer(node)) continue;
    const bool name = key == "about" || key == "kind" || key == "precision";
    all[key] = name ? member.value() : resolved(member, scope);
  }
  return all;
}

/// The native size of a list's images, and the one that is asked for.
std::pair<int, int> sizes_of(const JsonNode& root, std::optional<int> side) {
  JsonObject image(root.child(kImage));
  const auto native = static_cast<int>(image.required("native").as_integer(1, kMaxImage));
  const JsonNode sizes_node = image.required("sizes");
  std::vector<int> sizes;
  for (const JsonNode& size : sizes_node.as_array()) sizes.push_back(static_cast<int>(size.as_integer(1, kMaxImage)));
  image.finish();
  if (std::find(sizes.begin(), sizes.end(), native) == sizes.end()) sizes_node.expected("the native size among them");
  if (side && std::find(sizes.begin(), sizes.end(), *side) == sizes.end())
    sizes_node.fail(fmt::format("an image of {} was asked for, expected one of {}", *side, fmt::join(sizes, ", ")));
  return {native, side.value_or(native)};
}

}  // namespace

JsonNode at_image(const JsonNode& root, std::optional<int> side, const LayerSettings& settings) {
  const bool sized = root.is_object() && root.value().contains(kImage);
  const bool has_blocks = root.is_object() && root.value().contains(kBlocks);
  if (!sized && side) root.fail(fmt::format("is for images of one size: it states no other sizes in \"{}\"", kImage));
  if (!sized && !has_blocks && settings.empty()) return root;
  Json content = root.value();
  int named = 0;
  Scope scope{settings, {}, &named};
  if (has_blocks) scope.blocks = root.child(kBlocks), content.erase(kBlocks);
  if (sized) {
    const auto [native, wanted] = sizes_of(root, side);
    content.erase(kImage);
    scope.numbers[kImage] = wanted;
    const double area = static_cast<double>(wanted) / native * wanted / native;
    if (wanted != native && content.contains("name") && content["name"].is_string())
      content["name"] = fmt::format("{}-{}", content["name"].get<std::string>(), wanted);
    if (content.contains("bytes_per_image") && content["bytes_per_image"].is_number())
      content["bytes_per_image"] = content["bytes_per_image"].get<double>() * area;
  }
  if (content.contains("networks")) content["networks"] = resolved(root.child("networks"), scope);
  if (root.pointer() == "/") return JsonNode::wrap(std::move(content), root.file(), root.directory());
  const std::string member = root.pointer().substr(1);
  return JsonNode::wrap({{member, std::move(content)}}, root.file(), root.directory()).child(member);
}

std::vector<int> LayerShape::numbers() const {
  std::vector<int> all = {channels};
  for (std::size_t i = dimensions == 3 ? 0 : 1; i < 3; ++i) all.push_back(static_cast<int>(sides[i]));
  return all;
}

std::string LayerShape::text() const { return fmt::format("{} x {}", channels, sides_text()); }

std::string LayerShape::sides_text() const {
  return (dimensions == 3 ? fmt::format("{} x ", sides[0]) : "") + fmt::format("{} x {}", sides[1], sides[2]);
}

LayerShape read_layer_shape(const JsonNode& node) {
  const auto numbers = node.as_array();
  if (numbers.size() < 2 || numbers.size() > 4)
    node.expected(
        "channels, height and width, as [3, 256, 256], channels and length, as [80, 8192], or channels, depth, height "
        "and width, as [3, 16, 64, 64]");
  LayerShape shape{static_cast<int>(numbers[0].as_integer(1, kMaxChannels)), {1, 1, 1}, numbers.size() - 1};
  for (std::size_t i = 1; i < numbers.size(); ++i)
    shape.sides[3 - numbers.size() + i] = numbers[i].as_integer(1, shape.dimensions == 1 ? kMaxLength : kMaxSide);
  return shape;
}

Extents read_layer_extents(JsonObject& in, const char* key, const LayerShape& shape, int neutral,
                           std::optional<Extents> default_value, const Extents& low, const Extents& high) {
  const auto node = default_value ? in.optional(key) : std::optional(in.required(key));
  Extents extents = node ? Extents{} : *default_value;
  std::vector<JsonNode> each;
  if (node && node->value().is_array()) {
    each = node->as_array();
    if (each.size() != shape.dimensions)
      node->expected(fmt::format("one number, or a list of {}: one for each side of the input", shape.dimensions));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (!shape.has(i)) {
      extents[i] = neutral;
    } else if (node) {
      extents[i] = (each.empty() ? *node : each[i + shape.dimensions - 3]).as_integer(low[i], high[i]);
    }
  }
  return extents;
}

int optional_integer(JsonObject& in, const char* key, int default_value, int low, int high) {
  const auto node = in.optional(key);
  return node ? static_cast<int>(node->as_integer(low, high)) : default_value;
}

bool optional_flag(JsonObject& in, const char* key, bool default_value) {
  const auto node = in.optional(key);
  return node ? node->as_bool() : default_value;
}

std::array<double, 2> optional_pair(JsonObject& in, const char* key, std::array<double, 2> default_value,
                                    const char* meaning) {
  const auto node = in.optional(key);
  if (!node) return default_value;
  const std::vector<double> values = node->as_numbers(0, 1000);
  if (values.size() != 2) node->expected(meaning);
  return {values[0], values[1]};
}

}  // namespace ganymede::traces
