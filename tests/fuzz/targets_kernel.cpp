// Readers of a training's files: pictures and other images, tensors, checkpoints.

#include "common/errors.hpp"
#include "kernel/data/idx.hpp"
#include "kernel/data/picture.hpp"
#include "kernel/train.hpp"
#include "kernel/weights.hpp"
#include "target.hpp"

namespace ganymede::fuzz {
namespace {

void read_tensors(std::string_view bytes) {
  const kernel::SafeTensors read = kernel::parse_safetensors(bytes, "file");
  const std::string text = kernel::write_safetensors(read);
  expect(kernel::write_safetensors(kernel::parse_safetensors(text, "again")) == text, "tensors as they were written");
}

kernel::Trainer& trainer() {
  static kernel::Trainer* const kTrainer = [] {
    kernel::TrainOptions options;
    options.threads = 1;
    options.batch = 2;
    return new kernel::Trainer(options);
  }();
  return *kTrainer;
}

/// Lines "KEY TAB VALUE" replace what a whole checkpoint says of itself; "-TENSOR" removes a tensor, "=TENSOR" leaves
/// it only one number.
void restore(std::string_view bytes) {
  static const kernel::SafeTensors kWhole = trainer().checkpoint();
  kernel::SafeTensors content = kWhole;
  while (!bytes.empty()) {
    const std::string line(bytes.substr(0, bytes.find('\n')));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    const std::size_t tab = line.find('\t');
    if (line.starts_with('-')) content.tensors.erase(line.substr(1));
    if (line.starts_with('=') && content.tensors.contains(line.substr(1))) content.tensors[line.substr(1)] = {{1}, {0}};
    if (tab != std::string::npos) content.metadata[line.substr(0, tab)] = line.substr(tab + 1);
  }
  trainer().restore(content, "file");
}

void read_picture(std::string_view bytes) {
  const kernel::Picture picture = kernel::read_picture(file_of(bytes));
  for (const int channels : {1, 3}) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(8 * 8 * channels));
    kernel::fit_picture(picture, {8, 8, channels}, out);
  }
}

void read_idx(std::string_view bytes) {
  const std::filesystem::path file = file_of(bytes);
  try {
    const kernel::Images images = kernel::read_idx_images(file);
    const std::filesystem::path again = file_of(kernel::write_idx_images(images));
    expect(kernel::read_idx_images(again).pixels == images.pixels, "images that are read as they were written");
  } catch (const ConfigError&) {
    const std::vector<std::uint8_t> labels = kernel::read_idx_labels(file);
    const std::filesystem::path again = file_of(kernel::write_idx_labels(labels));
    expect(kernel::read_idx_labels(again) == labels, "labels that are read as they were written");
  }
}

}  // namespace

std::vector<Target> kernel_targets() {
  return {
      {"safetensors", "kernel/weights.cpp", read_tensors},
      {"checkpoint", "kernel/train_checkpoint.cpp kernel/weights.cpp", restore, "", 4},
      {"picture", "kernel/data/picture.cpp", read_picture},
      {"idx", "kernel/data/idx.cpp", read_idx},
      {"cifar", "kernel/data/idx.cpp", [](std::string_view bytes) { (void)kernel::read_cifar({file_of(bytes)}); }},
  };
}

}  // namespace ganymede::fuzz
