#pragma once
// A format that `ganymede export` writes, described as data. The subcommands of `export` with their help, completions
// and manual pages, and the table of docs/exports.md, are made from the table of exporters; nothing else names a
// format.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/documents.hpp"

namespace ganymede::exports {

/// One flag of an exporter.
struct ExportOption {
  enum class Kind {
    text,     ///< anything, or one of `choices`
    integer,  ///< from `min` to `max`
    index,    ///< a place in a list, from 0; may be left out
    flag,     ///< given or not
  };
  std::string name;  ///< without dashes: "start"
  std::string summary;
  Kind kind = Kind::text;
  std::string default_value = {};         ///< empty: none
  std::vector<std::string> choices = {};  ///< nothing else is accepted, unless empty
  int min = 0, max = 0;                   ///< of an integer, both included
};

/// The user's values for the options of an exporter, by the options' names. An option that was not given has its
/// default value.
class ExportValues {
 public:
  explicit ExportValues(std::span<const ExportOption> options);

  /// The place where the parser writes an option's value, after it has checked the value against the option's kind.
  std::string& slot(const std::string& name) { return values_.at(name); }

  const std::string& text(const std::string& name) const { return values_.at(name); }
  bool flag(const std::string& name) const { return !values_.at(name).empty(); }
  int integer(const std::string& name) const;
  std::optional<std::size_t> index(const std::string& name) const;

 private:
  std::map<std::string, std::string> values_;
};

/// Messages of an exporter to the user, apart from the text that it exports.
struct ExportConsole {
  std::function<void(const std::string&)> remark;
};

struct Exporter {
  std::string name;      ///< as in `ganymede export NAME`
  std::string summary;   ///< what it writes, one line
  std::string examples;  ///< lines of a shell, indented by two
  std::string about;     ///< lines for the help; empty: the summary says it all
  /// The kinds of document that it reads; any other is refused with `refusal`.
  std::vector<report::DocumentKind> reads;
  std::string refusal = {};
  std::vector<ExportOption> options = {};

  /// Throws ConfigError for values that the options' kinds allow and the exporter does not; called before the document
  /// is read. May be null.
  void (*check)(const ExportValues&) = nullptr;
  /// Returns the text that goes to --output or standard output.
  std::string (*write)(const report::Document&, const ExportValues&, const ExportConsole&) = nullptr;
};

/// Every exporter, in the order in which `ganymede export --help` lists them.
std::span<const Exporter> exporters();

/// Throws ConfigError with the exporter's refusal if it does not read documents of this kind.
void check_kind(const Exporter& exporter, const report::Document& document);

/// The kinds in words: "a result, a sweep or a plan".
std::string kinds_text(std::span<const report::DocumentKind> kinds);

/// The commands that write these kinds, in words: "what simulate, sweep or plan wrote with --format json".
std::string source_text(std::span<const report::DocumentKind> kinds);

}  // namespace ganymede::exports
