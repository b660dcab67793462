#pragma once
// GPUs by the names that people, drivers and schedulers give them.

#include <optional>
#include <string>
#include <vector>

#include "platforms/gpu_sheets.hpp"
#include "platforms/platform.hpp"
#include "platforms/sky_gpus.hpp"

namespace ganymede::platforms {

/// True for a GPU's name as people write it: "RTX 4090", "4090" or "NVIDIA GeForce RTX 4090" for "RTX4090".
bool is_gpu_name(const std::string& text, const std::string& name);

/// How well a GPU of a catalog fits a name, such as a driver's "NVIDIA A100-SXM4-80GB" or "nvidia-tesla-a100"; 0: not
/// at all. The name must say nothing else: "A100-90GB" is no A100, and an "RTX 4090 D" no RTX 4090.
int gpu_likeness(const std::string& name, const Gpu& gpu);

/// The names in `gpus` of the GPUs that a name stands for: those of the family, or the one, with just this name; else
/// those that are likest to it. Returns the text itself if there is none.
std::vector<std::string> gpus_named(const std::string& text, const std::vector<Gpu>& gpus);

/// The GPU that has a data sheet under a name as people type it; nothing if the name says another memory than the
/// sheet.
std::optional<SkyGpu> gpu_by_sheet(const std::string& name);

/// The same as a GPU: its memory and rates. Nothing is known of its launches and idle power.
std::optional<Gpu> gpu_of_sheet(const std::string& name);

/// The data sheet of a GPU as people type it; nullptr if there is none, or if the name says a memory with which neither
/// the sheet nor a catalog has this GPU: "A100-81GB".
const GpuSheet* sheet_named(const std::string& name);

/// `; did you mean "A100"?`, if a GPU of a catalog or a data sheet is called nearly so.
std::string did_you_mean_gpu(const std::string& text);

}  // namespace ganymede::platforms
