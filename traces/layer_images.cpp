#include "traces/layer_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::traces {
namespace {
constexpr int kMaxImage = 65536;
constexpr std::string_view kImage = "image";

bool is_layer(const JsonNode& node) { return node.is_object() && node.value().contains("kind"); }

/// True if the layer says that it is not there for images of that size.
bool is_absent(const JsonNode& node, int side) {
  if (!is_layer(node) || !node.value().contains(kImage)) return false;
  JsonObject in(node.child(kImage));
  const auto from = in.optional("from"), to = in.optional("to");
  if (!from && !to) in.node().fail("expected \"from\", \"to\" or both: the sizes for which the layer is there");
  in.finish();
  const auto least = from ? from->as_integer(1, kMaxImage) : 1;
  const auto most = to ? to->as_integer(least, kMaxImage) : kMaxImage;
  return side < least || side > most;
}

/// The number that "image" or "image/32" stands for.
int number_of(const JsonNode& node, int side) {
  std::string_view text = node.value().as_string();
  text.remove_prefix(kImage.size());
  if (text.empty()) return side;
  text.remove_prefix(1);
  int divisor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), divisor);
  if (error != std::errc{} || end != text.data() + text.size() || divisor < 1 || side % divisor != 0)
    node.expected(fmt::format("a divisor of {} behind \"image/\"", side));
  return side / divisor;
}

Json resolved(const JsonNode& node, int side) {
  if (node.is_string()) {
    const auto text = node.value().get<std::string>();
    return text == kImage || text.starts_with("image/") ? Json(number_of(node, side)) : node.value();
  }
  if (node.value().is_array()) {
    Json all = Json::array();
    for (const JsonNode& entry : node.as_array())
      all.push_back(is_absent(entry, side) ? Json() : resolved(entry, side));
    return all;
  }
  if (!node.is_object()) return node.value();
  Json all = Json::object();
  for (const auto& [key, member] : node.as_map()) {
    if (key == kImage && is_layer(node)) continue;
    all[key] = key == "about" ? member.value() : resolved(member, side);
  }
  return all;
}

}  // namespace

JsonNode at_image(const JsonNode& root, std::optional<int> side) {
  if (!root.is_object() || !root.value().contains(kImage)) {
    if (side) root.fail(fmt::format("is for images of one size: it states no other sizes in \"{}\"", kImage));
    return root;
  }
  JsonObject image(root.child(kImage));
  const auto native = static_cast<int>(image.required("native").as_integer(1, kMaxImage));
  const JsonNode sizes_node = image.required("sizes");
  std::vector<int> sizes;
  for (const JsonNode& size : sizes_node.as_array()) sizes.push_back(static_cast<int>(size.as_integer(1, kMaxImage)));
  image.finish();
  if (std::find(sizes.begin(), sizes.end(), native) == sizes.end()) sizes_node.expected("the native size among them");
  if (side && std::find(sizes.begin(), sizes.end(), *side) == sizes.end())
    sizes_node.fail(fmt::format("an image of {} was asked for, expected one of {}", *side, fmt::join(sizes, ", ")));
  const int wanted = side.value_or(native);
  Json content = root.value();
  content.erase(std::string(kImage));
  if (content.contains("networks")) content["networks"] = resolved(root.child("networks"), wanted);
  if (wanted != native) {
    const double area = static_cast<double>(wanted) / native * wanted / native;
    if (content.contains("name") && content["name"].is_string())
      content["name"] = fmt::format("{}-{}", content["name"].get<std::string>(), wanted);
    if (content.contains("bytes_per_image") && content["bytes_per_image"].is_number())
      content["bytes_per_image"] = content["bytes_per_image"].get<double>() * area;
  }
  return JsonNode::wrap(std::move(content), root.file(), root.directory());
}

}  // namespace ganymede::traces
