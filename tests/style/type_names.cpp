#include "type_names.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace ganymede {
namespace {

struct Token {
  std::string text;
  std::size_t line;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Splits C++ text into words, "::" and single characters. Comments and preprocessor lines are skipped; each literal of
/// text becomes "\"".
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> tokens() {
    while (at_ < text_.size()) next();
    return std::move(tokens_);
  }

 private:
  bool here(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void skip_to(std::size_t end) {
    end = std::min(end, text_.size());
    line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }
  std::size_t behind(std::string_view what, std::size_t from) const {
    const std::size_t found = text_.find(what, from);
    return found == std::string_view::npos ? text_.size() : found + what.size();
  }

  void next() {
    const char c = text_[at_];
    const bool line_begins = tokens_.empty() || tokens_.back().line != line_;
    if (here("//")) {
      skip_to(text_.find('\n', at_));
    } else if (here("/*")) {
      skip_to(behind("*/", at_ + 2));
    } else if (c == '#' && line_begins) {
      std::size_t end = text_.find('\n', at_);
      while (end != std::string_view::npos && text_[end - 1] == '\\') end = text_.find('\n', end + 1);
      skip_to(end);
    } else if (here("R\"")) {
      const std::size_t open = text_.find('(', at_);
      const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
      literal(behind(close, open));
    } else if (c == '"' || c == '\'') {
      std::size_t end = at_ + 1;
      while (end < text_.size() && text_[end] != c) end += text_[end] == '\\' ? 2 : 1;
      literal(end + 1);
    } else if (is_word(c)) {
      // A number may have separators: 1'000.
      const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
      std::size_t end = at_;
      while (end < text_.size() && (is_word(text_[end]) || (number && (text_[end] == '\'' || text_[end] == '.'))))
        ++end;
      take(end);
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      skip_to(at_ + 1);
    } else {
      take(at_ + (here("::") ? 2 : 1));
    }
  }

  void literal(std::size_t end) {
    tokens_.push_back({"\"", line_});
    skip_to(end);
  }
  void take(std::size_t end) {
    tokens_.push_back({std::string(text_.substr(at_, end - at_)), line_});
    skip_to(end);
  }

  std::string_view text_;
  std::size_t at_ = 0, line_ = 1;
  std::vector<Token> tokens_;
};

using Tokens = std::vector<Token>;

/// The index after the bracket that closes the one at `at`.
std::size_t behind_bracket(const Tokens& tokens, std::size_t at, const char* open, const char* close) {
  for (int depth = 0; at < tokens.size(); ++at) {
    depth += tokens[at].text == open ? 1 : tokens[at].text == close ? -1 : 0;
    if (depth == 0) return at + 1;
  }
  return at;
}

std::string joined(const Tokens& tokens, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += tokens[i].text;
  return text;
}

/// The name of the type that the tokens before a "{" define; "" if they define none.
std::string type_before_brace(const Tokens& tokens) {
  std::size_t at = 0;
  while (at < tokens.size() && tokens[at].text == "template") at = behind_bracket(tokens, at + 1, "<", ">");
  while (at < tokens.size() &&
         (tokens[at].text == "typedef" || tokens[at].text == "static" || tokens[at].text == "const" ||
          tokens[at].text == "constexpr" || tokens[at].text == "inline"))
    ++at;
  const auto is = [&](const char* word) { return at < tokens.size() && tokens[at].text == word; };
  if (!is("class") && !is("struct") && !is("union") && !is("enum")) return "";
  ++at;
  if (is("class") || is("struct")) ++at;
  while (is("[") || is("alignas"))
    at = is("[") ? behind_bracket(tokens, at, "[", "]") : behind_bracket(tokens, at + 1, "(", ")");
  const std::size_t begin = at;
  while (at < tokens.size() && (is_word(tokens[at].text[0]) || is("::")) && !is("final")) {
    ++at;
    if (at < tokens.size() && is_word(tokens[at].text[0]) && !is("final") && tokens[at - 1].text != "::") return "";
  }
  if (is("<")) at = behind_bracket(tokens, at, "<", ">");
  const std::size_t end = at;
  if (is("final")) ++at;
  return at == tokens.size() || is(":") ? joined(tokens, begin, end) : "";
}

enum class ScopeKind { named_namespace, hidden };

struct Scope {
  ScopeKind kind;
  std::string name;
};

}  // namespace

std::vector<TypeDefinition> types_defined_in(std::string_view text) {
  std::vector<TypeDefinition> found;
  std::vector<Scope> scopes;
  Tokens before;
  for (Token& token : Lexer(text).tokens()) {
    if (token.text == "{") {
      const std::size_t skipped = !before.empty() && before[0].text == "inline" ? 1 : 0;
      const std::string prefix = scopes.empty() || scopes.back().name.empty() ? "" : scopes.back().name + "::";
      const bool visible = scopes.empty() || scopes.back().kind == ScopeKind::named_namespace;
      if (before.size() > skipped && before[skipped].text == "namespace") {
        const std::string name = joined(before, skipped + 1, before.size());
        scopes.push_back({visible && !name.empty() ? ScopeKind::named_namespace : ScopeKind::hidden, prefix + name});
      } else if (before.size() == 2 && before[0].text == "extern") {
        scopes.push_back(
            {visible ? ScopeKind::named_namespace : ScopeKind::hidden, scopes.empty() ? "" : scopes.back().name});
      } else {
        const std::string name = visible ? type_before_brace(before) : "";
        if (!name.empty()) found.push_back({prefix + name, before.front().line});
        scopes.push_back({ScopeKind::hidden, ""});
      }
      before.clear();
    } else if (token.text == "}") {
      if (!scopes.empty()) scopes.pop_back();
      before.clear();
    } else if (token.text == ";") {
      before.clear();
    } else {
      before.push_back(std::move(token));
    }
  }
  return found;
}

namespace {

/// The program to which a file belongs; "" if the file is in every program.
std::string program_of(const std::string& path) {
  if (path.starts_with("bench/")) return path;
  if (!path.starts_with("tests/") || path.starts_with("tests/support/")) return "";
  return path.substr(0, path.rfind('/'));
}

}  // namespace

std::vector<std::string> types_defined_twice(const std::vector<TypeFile>& files) {
  struct Place {
    std::string path, program;
    std::size_t line;
  };
  std::map<std::string, std::vector<Place>> places;
  std::vector<std::string> twice;
  for (const TypeFile& file : files)
    for (const TypeDefinition& type : types_defined_in(file.text)) {
      const Place here{file.path, program_of(file.path), type.line};
      for (const Place& other : places[type.name])
        if (other.path != here.path && (other.program.empty() || here.program.empty() || other.program == here.program))
          twice.push_back(type.name + " is defined in " + other.path + ":" + std::to_string(other.line) + " and in " +
                          here.path + ":" + std::to_string(here.line));
      places[type.name].push_back(here);
    }
  return twice;
}

}  // namespace ganymede
