#include "cli/export_document.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "cli/progress.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"

namespace ganymede::cli {

std::size_t export_document(const std::string& file, const Shared& shared,
                            const std::function<std::string(const report::Document&)>& make,
                            std::initializer_list<report::DocumentKind> kinds) {
  check_output(shared);
  keep_input(shared, file);
  auto waiting = show_elapsed(shared, "reading");
  const auto fail = [&](const std::exception& error) -> ConfigError {
    return ConfigError(fmt::format("{}: is no whole result of this version ({}); simulate again with --format json",
                                   file, error.what()));
  };
  const report::Document document = report::load_document(file, kinds);
  std::string text;
  try {
    text = make(document);
  } catch (const ConfigError&) {
    throw;
  } catch (const JsonError& error) {
    throw fail(error);
  } catch (const std::logic_error& error) {  // text that is not a number, or an index beyond its list
    throw fail(error);
  }
  waiting.reset();
  emit(shared, text);
  return text.size();
}

}  // namespace ganymede::cli
