#pragma once
// A directory that disappears with the test, and a small data set in it.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/file.hpp"
#include "kernel/data/glyphs.hpp"
#include "kernel/data/idx.hpp"
#include "kernel/train.hpp"

namespace ganymede::kernel {

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "ganymede-kernel-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    write_file(file(name), bytes);
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

/// Options for a training on a few glyphs in `scratch`.
inline TrainOptions small_training(const Scratch& scratch, int images = 200) {
  scratch.write("train-images-idx3-ubyte", write_idx_images(draw_glyphs(images, 7).images));
  TrainOptions options;
  options.dataset = scratch.path().string();
  options.batch = 32;
  options.threads = 2;
  return options;
}

}  // namespace ganymede::kernel
