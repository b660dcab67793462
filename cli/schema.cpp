// ganymede schema: the JSON Schemas of our file formats, for editors and other programs.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/schema_bundle.hpp"
#include "documents/schemas.hpp"

namespace ganymede::cli {

namespace {

void declare_schema(Parser command, Shared& shared) {
  std::vector<std::string> names;
  for (const EmbeddedText& schema : embedded_schemas()) names.emplace_back(schema.name);
  for (const documents::DescribedDocument& document : documents::described_documents())
    names.emplace_back(document.name);
  std::sort(names.begin(), names.end());  // files are sorted with their extensions
  auto what = std::make_shared<std::string>();
  command.add_option("format", *what, fmt::format("{}", fmt::join(names, ", "))).required().check(one_of(names));
  add_output(command, shared);
  command.callback([what, &shared] {
    for (const EmbeddedText& schema : embedded_schemas())
      if (schema.name == *what) emit(shared, bundled_schema(schema.text, embedded_schema_definitions(), listed_names));
    for (const documents::DescribedDocument& document : documents::described_documents())
      if (document.name == *what) emit(shared, document.schema().dump(1) + "\n");
  });
}

}  // namespace

Command schema_command() {
  return {.name = "schema",
          .summary = "the JSON Schema of a file format",
          .examples =
              "  ganymede schema scenario > scenario.schema.json        name it in an editor's \"$schema\" setting\n"
              "  ganymede schema result\n",
          .about =
              "The JSON Schema (draft 7) of a file format. It says what may stand where; what the program checks "
              "besides, such as\n"
              "units, names and what contradicts itself, is in its error messages. The program also takes // comments.",
          .declare = declare_schema};
}

}  // namespace ganymede::cli
