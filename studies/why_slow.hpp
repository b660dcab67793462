#pragma once
// Why is a training slow on several GPUs?

#include <cstdint>
#include <string>

#include "documents/machine_checks.hpp"
#include "studies/logged_machine.hpp"

namespace ganymede::studies {

struct WhySlowOptions : LogOptions, MachineHints {
  std::string trace;            ///< a profiler trace in place of two rates
  int gpus = 0;                 ///< of all nodes
  std::string one, all;         ///< rates as rate_of() reads them
  std::string model, recipe;    ///< whose gradients and batch are taken; "": ResNet-50's
  std::int64_t parameters = 0;  ///< trainable ones; 0: those of the model
  int batch = 0;                ///< images on one GPU; 0: the model's
  double images = 0;            ///< for which savings are stated, and that take a time; 0: a million, and no times
  std::string launcher;         ///< "processes": one a GPU; "one-process": nn.DataParallel and the like; "": not known
  bool synthetic = false;       ///< images are made up, so that none has to be read
};

/// From the rates of one GPU and of all: predicts what the machine should give, and with each cause what it would give,
/// and says which explains the measured rate. Of a profiler trace: the parts of its step. Throws ConfigError for
/// missing or contradicting options.
documents::WhySlow why_slow(const WhySlowOptions& options);

/// A rate as people write it, "250img/s", "250", "4s/kimg", "0.5s/it" or "2it/s", in images a second; each iteration
/// takes `images`. "25s/epoch" and "40h" are times of the images of a whole run, if that is not 0. Throws ConfigError,
/// which names the option, for anything else.
double rate_of(const std::string& option, const std::string& text, double images, double run = 0);

/// The images for which savings are stated.
inline double images_of(const WhySlowOptions& options) { return options.images > 0 ? options.images : 1e6; }

/// The part of why_slow() that is of a profiler trace.
documents::WhySlow why_slow_of_trace(const WhySlowOptions& options);

}  // namespace ganymede::studies
