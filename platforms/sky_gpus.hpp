#pragma once
// Which GPU an accelerator of SkyPilot's lists is, and how it is written into a platform file.

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "platforms/gpu_sheets.hpp"

namespace ganymede::platforms {

/// An accelerator as a list names it.
struct SkyAccelerator {
  std::string_view cloud, name, info;  ///< `info`: the cell GpuInfo, in whatever dialect
  double count = 0;                    ///< below 1: a share of a GPU
  bool card = false;                   ///< the instance's name says that it is a card for PCIe
  double memory_gib = 0;               ///< of one GPU, if the list states it beside; 0: it does not
};

struct SkyGpu {
  const GpuSheet* sheet = nullptr;  ///< nullptr: there is no data sheet
  std::string name;                 ///< in platforms: "A100-80GB-PCIE", "V100-32GB", "A10-1of6"
  double memory_gib = 0;
  double share = 1;  ///< of the GPU
};

/// True for a name such as "H100_PCIE_80GB::1".
bool names_a_card(std::string_view name);

/// The GPU by its name, where one name stands for several by the memory that the list states and by words for the form
/// of the card (PCIe, NVL) in the names beside it.
SkyGpu gpu_of(const SkyAccelerator& accelerator);

/// The member of "gpus" of a platform file: {"memory": ..., "source": ...}.
std::string gpu_text(const SkyGpu& gpu);

/// The members "gpu_links" and "host_link" of an instance with so many of these GPUs, each followed by a comma.
std::string links_text(const GpuSheet& sheet, int gpus);

/// The sources that gpu_text() and links_text() name, and that of the latency of TCP: members of "sources".
std::span<const std::pair<std::string_view, std::string_view>> sky_sources();

}  // namespace ganymede::platforms
