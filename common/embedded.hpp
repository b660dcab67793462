#pragma once
// Text files that are built into the program by cmake/embed.cmake.

#include <span>
#include <string_view>

#include "common/text.hpp"

namespace ganymede {

struct EmbeddedText {
  std::string_view name, text;
};

// Each list is sorted by name. A name is the file's, without its extension unless a comment says otherwise.
std::span<const EmbeddedText> embedded_catalogs();            ///< platforms/catalog
std::span<const EmbeddedText> embedded_spot();                ///< platforms/spot
std::span<const EmbeddedText> embedded_gpu_sheets();          ///< platforms/gpu_sheets.csv alone
std::span<const EmbeddedText> embedded_traces();              ///< traces/recorded
std::span<const EmbeddedText> embedded_layers();              ///< traces/layers
std::span<const EmbeddedText> embedded_recipes();             ///< traces/recipes
std::span<const EmbeddedText> embedded_kernel_parameters();   ///< calibration/kernels/data
std::span<const EmbeddedText> embedded_quality();             ///< calibration/quality/data
std::span<const EmbeddedText> embedded_throughputs();         ///< sim/cluster/throughputs, named with the extension
std::span<const EmbeddedText> embedded_schemas();             ///< docs/schemas
std::span<const EmbeddedText> embedded_schema_definitions();  ///< docs/schemas/common
std::span<const EmbeddedText> embedded_examples();            ///< cli/examples, then studies/policies/external.py
std::span<const EmbeddedText> embedded_validations();         ///< studies/*/study.json, named after the folder
std::span<const EmbeddedText> embedded_report_page();         ///< report/page, named with the extension
std::span<const EmbeddedText> embedded_serve_page();          ///< serve/page, named with the extension

}  // namespace ganymede
