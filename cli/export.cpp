// ganymede export: results in the forms that other tools read. Each exporter of exports/ becomes a subcommand.

#include "cli/export.hpp"

#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "cli/command.hpp"
#include "cli/export_document.hpp"
#include "exports/exporter.hpp"

namespace ganymede::cli {

Command export_simgrid_command();  // export_simgrid.cpp

namespace {

/// Empty if the text is an index of a list, else why not. The parser alone would accept "1.5".
std::string check_index(const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size()
             ? ""
             : fmt::format("found {}, expected an index, from 0", text);
}

/// Declares one option, whose value goes to its slot as text.
void declare_option(Parser command, const exports::ExportOption& option, exports::ExportValues& values) {
  const std::string flag = "--" + option.name;
  std::string& slot = values.slot(option.name);
  if (option.kind == exports::ExportOption::Kind::flag) {
    command.add_flag_callback(
        flag, [&slot] { slot = "yes"; }, option.summary);
    return;
  }
  Option declared = command.add_option(flag, slot, option.summary);
  if (option.kind == exports::ExportOption::Kind::index) declared.check(check_index).type_name("UINT");
  if (option.kind == exports::ExportOption::Kind::integer)
    declared.check(integer_between(option.min, option.max)).type_name("INT");
  if (!option.choices.empty()) declared.check(one_of(option.choices));
  if (!option.default_value.empty()) declared.capture_default_str();
}

void run_export(const exports::Exporter& exporter, const std::string& file, const exports::ExportValues& values,
                Shared& shared) {
  const exports::ExportConsole console{.remark = [&](const std::string& text) { remark(shared, text); }};
  if (exporter.check != nullptr) exporter.check(values);
  export_document(file, shared, [&](const report::Document& document) {
    exports::check_kind(exporter, document);
    return exporter.write(document, values, console);
  });
}

}  // namespace

Command exporter_command(const exports::Exporter& exporter) {
  return {.name = exporter.name,
          .summary = exporter.summary,
          .examples = exporter.examples,
          .about = exporter.about,
          .declare = [&exporter](Parser command, Shared& shared) {
            auto file = std::make_shared<std::string>();
            auto values = std::make_shared<exports::ExportValues>(exporter.options);
            command.add_option("document", *file, exports::source_text(exporter.reads)).required();
            for (const exports::ExportOption& option : exporter.options) declare_option(command, option, *values);
            add_output(command, shared);
            command.callback([&exporter, file, values, &shared] { run_export(exporter, *file, *values, shared); });
          }};
}

Command export_command() {
  return {.name = "export",
          .summary = "results in the forms that other tools read, and machines for SimGrid",
          .examples =
              "  ganymede simulate scenario.json --format json -o result.json\n"
              "  ganymede export focus result.json --start 2026-12-01T09:00:00Z -o bill.csv\n"
              "  ganymede export csv result.json\n"
              "  ganymede export skypilot plan.json -o task.yaml\n"
              "  ganymede export kubernetes plan.json --image registry/ganymede -o job.yaml\n"
              "  ganymede export mlflow result.json -o runs.json\n"
              "  ganymede export simgrid --catalog aws --instance p4d.24xlarge --nodes 8 -o platform.xml\n",
          .about = "Results in the forms that other tools read. docs/exports.md has more.",
          .declare = [](Parser command, Shared& shared) {
            command.require_subcommand();
            for (const exports::Exporter& exporter : exports::exporters())
              add_command(command, exporter_command(exporter), shared);
            add_command(command, export_simgrid_command(), shared);
          }};
}

}  // namespace ganymede::cli
