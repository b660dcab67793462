#include "traces/layer_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace ganymede::traces {
namespace {

constexpr int kMaxChannels = 1 << 20;
constexpr int kMaxSide = 1 << 16;
constexpr int kMaxLength = 1 << 24;  // of a shape of one dimension

struct Shape {
  int channels = 0, height = 0, width = 0;
  bool line = false;  // of one dimension: kernels, strides and factors are those of its width
  double pixels() const { return static_cast<double>(height) * width; }
  double size() const { return channels * pixels(); }
};

int integer(JsonObject& in, const char* key, int default_value, int low, int high) {
  const auto node = in.optional(key);
  return node ? static_cast<int>(node->as_integer(low, high)) : default_value;
}

bool flag(JsonObject& in, const char* key, bool default_value) {
  const auto node = in.optional(key);
  return node ? node->as_bool() : default_value;
}

Shape read_shape(const JsonNode& node) {
  const auto sizes = node.as_array();
  if (sizes.size() != 2 && sizes.size() != 3)
    node.expected("channels, height and width, as [3, 256, 256], or channels and length, as [80, 8192]");
  const auto channels = static_cast<int>(sizes[0].as_integer(1, kMaxChannels));
  if (sizes.size() == 2) return {channels, 1, static_cast<int>(sizes[1].as_integer(1, kMaxLength)), true};
  return {channels, static_cast<int>(sizes[1].as_integer(1, kMaxSide)),
          static_cast<int>(sizes[2].as_integer(1, kMaxSide))};
}

/// Walks the layers of a network and keeps the shape of the activations between them.
class Walk {
 public:
  explicit Walk(Shape input) : shape_(input) {}

  void layers(const JsonNode& list) {
    for (const JsonNode& node : list.as_array()) layer(node);
  }
  const Shape& shape() const { return shape_; }
  std::vector<LayerCost> take() { return std::move(costs_); }

 private:
  void layer(const JsonNode& node) {
    JsonObject in(node);
    const std::string kind = in.required("kind").as_choice(
        {"convolution", "transposed-convolution", "linear", "attention", "norm", "activation", "upsample", "downsample",
         "concat", "reshape", "constant", "residual", "branch", "side", "repeat"});
    if (kind == "convolution" || kind == "transposed-convolution") {
      convolution(in, kind != "convolution");
    } else if (kind == "linear") {
      linear(in);
    } else if (kind == "attention") {
      attention(in);
    } else if (kind == "norm") {
      norm(in);
    } else if (kind == "activation") {
      activation();
    } else if (kind == "upsample" || kind == "downsample") {
      resize(in, kind == "upsample");
    } else if (kind == "concat") {
      shape_.channels += static_cast<int>(in.required("channels").as_integer(1, kMaxChannels));
    } else if (kind == "reshape") {
      shape_ = read_shape(in.required("to"));
    } else if (kind == "constant") {
      shape_ = read_shape(in.required("to"));
      add(0, 0, shape_.size(), static_cast<std::int64_t>(shape_.size()), 1);
    } else if (kind == "residual") {
      residual(in);
    } else if (kind == "branch" || kind == "side") {
      beside(in, kind == "side");
    } else {
      const int times = static_cast<int>(in.required("times").as_integer(1, 10'000));
      const JsonNode inner = in.required("layers");
      for (int i = 0; i < times; ++i) layers(inner);
    }
    in.finish();
  }

  /// Adds a layer that reads `in` numbers and writes `out`, which are kept for the backward pass.
  void add(double flops, double in, double out, std::int64_t parameters, std::int64_t launches) {
    costs_.push_back({flops, kBytesPerNumber * in, kBytesPerNumber * out, kBytesPerNumber * out, launches, parameters});
    own_ = true;
    needed_ = false;
  }

  /// Adds an activation. It overwrites its input, as `inplace=True` of PyTorch and fused kernels do, unless another
  /// layer reads that too; either way its result is needed for the backward pass.
  void activation() {
    const bool in_place = own_;
    add(0, shape_.size(), shape_.size(), 0, 1);
    if (in_place) costs_.back().kept = 0;
    needed_ = true;
  }

  /// Forgets the result of the last layer if the sum that follows is all that reads it: adding needs none of its inputs
  /// for the backward pass.
  void end_way() {
    if (own_ && !needed_) costs_.back().kept = 0;
  }

  void convolution(JsonObject& in, bool transposed) {
    const Shape from = shape_;
    const int out = static_cast<int>(in.required("out").as_integer(1, kMaxChannels));
    const JsonNode kernel_node = in.required("kernel");
    const int kernel = static_cast<int>(kernel_node.as_integer(1, 1024));
    const int stride = integer(in, "stride", 1, 1, 1024);
    const int padding = integer(in, "padding", (kernel - 1) / 2, 0, 1024);
    const int extra = transposed ? integer(in, "output_padding", 0, 0, 1024) : 0;
    const int groups = integer(in, "groups", 1, 1, kMaxChannels);
    const bool bias = flag(in, "bias", true);
    if (from.channels % groups != 0 || out % groups != 0)
      in.node().fail(fmt::format("{} groups divide neither {} nor {} channels", groups, from.channels, out));
    const auto size = [&](int length) {
      const int to = transposed ? (length - 1) * stride - 2 * padding + kernel + extra
                                : (length + 2 * padding - kernel) / stride + 1;
      if (to < 1 || (!transposed && kernel > length + 2 * padding))
        kernel_node.fail(
            fmt::format("a kernel of {} does not fit an input of {} x {}", kernel, from.height, from.width));
      return to;
    };
    shape_ = {out, from.line ? 1 : size(from.height), size(from.width), from.line};
    const int group = from.channels / groups;
    const double weights = static_cast<double>(kernel) * (from.line ? 1 : kernel) * group * out;
    const double places = transposed ? from.pixels() : shape_.pixels();
    add(2 * weights * places, from.size(), shape_.size(), static_cast<std::int64_t>(weights) + (bias ? out : 0),
        bias ? 2 : 1);
  }

  void linear(JsonObject& in) {
    const int out = static_cast<int>(in.required("out").as_integer(1, std::int64_t{kMaxChannels} * 16));
    const bool bias = flag(in, "bias", true);
    const double from = shape_.size();
    shape_ = {out, 1, 1};
    add(2 * from * out, from, out, static_cast<std::int64_t>(from) * out + (bias ? out : 0), bias ? 2 : 1);
  }

  /// Adds self-attention over pixels. Keys and values may be pooled, as in SAGAN and BigGAN.
  void attention(JsonObject& in) {
    const int key = static_cast<int>(in.required("key").as_integer(1, kMaxChannels));
    const int value = static_cast<int>(in.required("value").as_integer(1, kMaxChannels));
    const int pool = integer(in, "pool", 1, 1, 1024);
    const double tokens = shape_.pixels();
    const double others = tokens / (static_cast<double>(pool) * (shape_.line ? 1 : pool));
    const double channels = shape_.channels;
    const double projections = channels * (2.0 * key + 2.0 * value);
    const double scores = tokens * others;
    add(2 * tokens * projections + 2 * scores * (key + value), shape_.size() + 2 * scores,
        tokens * (2 * key + value) + 2 * scores + shape_.size(), static_cast<std::int64_t>(projections), 8);
    needed_ = true;  // most of what it writes are inner values, which its backward pass needs
  }

  void norm(JsonObject& in) {
    const bool affine = flag(in, "affine", true);
    // The input is read twice: to compute the statistics, and to apply them.
    add(0, 2 * shape_.size(), shape_.size(), affine ? 2 * shape_.channels : 0, 2);
  }

  void resize(JsonObject& in, bool up) {
    const JsonNode node = in.required("factor");
    const int factor = static_cast<int>(node.as_integer(1, 1024));
    const double before = shape_.size();
    end_way();  // like a sum, it needs nothing of its input for the backward pass
    const int vertical = shape_.line ? 1 : factor;
    if (up) {
      shape_.height *= vertical, shape_.width *= factor;
    } else {
      if (vertical > shape_.height || factor > shape_.width)
        node.fail(fmt::format("{} x {} cannot be made smaller {} times", shape_.height, shape_.width, factor));
      shape_.height /= vertical, shape_.width /= factor;
    }
    add(0, before, shape_.size(), 0, 1);
  }

  /// Adds layers whose result does not go on in the main path. A branch starts from the main path, a side from an input
  /// of its own.
  void beside(JsonObject& in, bool own_input) {
    const Shape start = shape_;
    if (own_input) shape_ = read_shape(in.required("input"));
    own_ = false;
    layers(in.required("layers"));
    shape_ = start;
    own_ = false;  // the main path's last result is not that of the last layer, or has two readers
  }

  /// Adds a residual block: its layers and its shortcut start from the same input, and their results are added.
  void residual(JsonObject& in) {
    const Shape start = shape_;
    own_ = false;
    layers(in.required("layers"));
    end_way();
    const Shape end = shape_;
    shape_ = start;
    own_ = false;
    if (const auto shortcut = in.optional("shortcut")) layers(*shortcut);
    end_way();
    if (shape_.channels != end.channels || shape_.height != end.height || shape_.width != end.width)
      in.node().fail(fmt::format("its ways end in {} x {} x {} and {} x {} x {}, which cannot be added", end.channels,
                                 end.height, end.width, shape_.channels, shape_.height, shape_.width));
    add(0, 2 * shape_.size(), shape_.size(), 0, 1);
  }

  Shape shape_;
  bool own_ = false;     // the last of `costs_` made the current activations, and no other layer reads them
  bool needed_ = false;  // its own backward pass reads them
  std::vector<LayerCost> costs_;
};

LayerNetwork read_layer_network(const JsonNode& node) {
  JsonObject in(node);
  LayerNetwork network;
  if (const auto copies = in.optional("copies")) network.copies = static_cast<double>(copies->as_integer(1, 1000));
  Walk walk(read_shape(in.required("input")));
  const JsonNode layers = in.required("layers");
  walk.layers(layers);
  in.optional("about");
  in.finish();
  network.output = {walk.shape().channels, walk.shape().height, walk.shape().width};
  network.layers = walk.take();
  if (network.total().parameters == 0) layers.fail("nothing in it is trained");
  return network;
}

using PassKind = LayerPass::Kind;

/// The default step: the discriminator learns from real and generated images, then the generator learns through it from
/// the same generated images.
const std::vector<LayerPass>& gan_step() {
  static const std::vector<LayerPass> step = {
      {"discriminator.forward_real", "discriminator", PassKind::forward, 1},
      {"discriminator.backward_real", "discriminator", PassKind::backward, 1},
      {"generator.forward", "generator", PassKind::forward, 1},
      {"discriminator.forward_fake", "discriminator", PassKind::forward, 1},
      {"discriminator.backward_fake", "discriminator", PassKind::backward, 1},
      {"discriminator.update", "discriminator", PassKind::update, 1},
      {"generator.forward_through_discriminator", "discriminator", PassKind::forward, 1},
      {"generator.backward_through_discriminator", "discriminator", PassKind::backward_input, 1},
      {"generator.backward", "generator", PassKind::backward, 1},
      {"generator.update", "generator", PassKind::update, 1}};
  return step;
}

std::vector<LayerPass> read_step(const JsonNode& node, const std::map<std::string, LayerNetwork>& networks) {
  std::vector<std::string> names;
  for (const auto& [name, network] : networks) names.push_back(name);
  std::vector<LayerPass> step;
  std::set<std::string> seen;
  for (const JsonNode& entry : node.as_array()) {
    JsonObject in(entry);
    LayerPass pass;
    pass.network = in.required("network").as_choice(names);
    const std::string kind = in.required("pass").as_choice({"forward", "backward", "backward-input", "update"});
    pass.kind = kind == "forward"          ? PassKind::forward
                : kind == "backward"       ? PassKind::backward
                : kind == "backward-input" ? PassKind::backward_input
                                           : PassKind::update;
    if (const auto times = in.optional("times")) pass.times = times->as_number(1e-6, 1e6);
    const auto name = in.optional("name");
    pass.name = name ? name->as_string() : pass.network + "." + kind;
    for (int i = 2; !seen.insert(pass.name).second; ++i) pass.name = fmt::format("{}.{}_{}", pass.network, kind, i);
    in.finish();
    step.push_back(std::move(pass));
  }
  return step;
}

void check_step(const JsonNode& at, const LayerList& list) {
  for (const auto& [name, network] : list.networks) {
    bool learned = false, updated = false;
    for (const LayerPass& pass : list.step) {
      if (pass.network != name) continue;
      if (pass.kind == PassKind::update && !learned)
        at.fail(fmt::format("{} is updated before any backward pass", name));
      learned = learned || pass.kind == PassKind::backward;
      updated = updated || pass.kind == PassKind::update;
    }
    if (!updated) at.fail(fmt::format("{} is never updated", name));
  }
}

}  // namespace

LayerCost& LayerCost::operator+=(const LayerCost& more) {
  flops += more.flops;
  read += more.read;
  written += more.written;
  kept += more.kept;
  launches += more.launches;
  parameters += more.parameters;
  return *this;
}

LayerCost LayerNetwork::total() const {
  LayerCost sum;
  for (const LayerCost& layer : layers) sum += layer;
  return sum;
}

LayerList read_layer_list(const JsonNode& root) {
  JsonObject in(root);
  check_schema(in, "ganymede.layers/1");
  LayerList list;
  list.name = in.required("name").as_string();
  if (const auto source = in.optional("source")) list.source = source->as_string();
  const auto precision = in.optional("precision");
  list.precision = precision ? precision->as_choice({"fp32", "tf32", "bf16", "fp16"}) : "fp32";
  const JsonNode networks = in.required("networks");
  for (const auto& [name, node] : networks.as_map()) list.networks[name] = read_layer_network(node);
  const auto step = in.optional("step");
  if (!step && !(list.networks.contains("generator") && list.networks.contains("discriminator")))
    networks.fail("without a \"step\" they must be called \"generator\" and \"discriminator\"");
  list.step = step ? read_step(*step, list.networks) : gan_step();
  check_step(step ? *step : networks, list);
  if (const auto bytes = in.optional("bytes_per_image")) list.bytes_per_image = bytes->as_number(0, 1e12);
  in.finish();
  return list;
}

}  // namespace ganymede::traces
