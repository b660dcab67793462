// The text of JSON values. The library writes strings and numbers, so that the text is the one it has always been.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/json_value.hpp"

namespace ganymede {
namespace {

using Handler = nlohmann::json::error_handler_t;

template <bool kOrdered>
class Writer {
 public:
  Writer(int indent, Handler handler, bool ascii) : indent_(indent), handler_(handler), ascii_(ascii) {}

  std::string take() { return std::move(out_); }

  void write(const BasicJson<kOrdered>& value, int level) {
    using Kind = typename BasicJson<kOrdered>::Kind;
    switch (value.kind()) {
      case Kind::null:
        out_ += "null";
        break;
      case Kind::boolean:
        out_ += value.template get<bool>() ? "true" : "false";
        break;
      case Kind::integer:
        out_ += fmt::format_int(value.template get<std::int64_t>()).c_str();
        break;
      case Kind::unsigned_integer:
        out_ += fmt::format_int(value.template get<std::uint64_t>()).c_str();
        break;
      case Kind::floating:
        out_ += nlohmann::json(value.template get<double>()).dump();
        break;
      case Kind::string:
        write(value.as_string());
        break;
      case Kind::array:
        write_all(value.elements(), "[]", level, [&](const auto& element) { write(element, level + 1); });
        break;
      case Kind::object:
        write_all(value.items(), "{}", level, [&](const auto& member) {
          write(member.first);
          out_ += indent_ < 0 ? ":" : ": ";
          write(member.second, level + 1);
        });
        break;
    }
  }

 private:
  void write(const std::string& text) {
    try {
      out_ += nlohmann::json(text).dump(-1, ' ', ascii_, handler_);
    } catch (const nlohmann::json::exception& error) {
      const std::string_view what = error.what();
      throw JsonError(std::string(what.substr(what.find("] ") + 2)));
    }
  }

  template <class Parts, class Write>
  void write_all(const Parts& parts, const char* brackets, int level, const Write& write_one) {
    out_ += brackets[0];
    bool first = true;
    for (const auto& part : parts) {
      if (!first) out_ += ',';
      first = false;
      begin_line(level + 1);
      write_one(part);
    }
    if (!parts.empty()) begin_line(level);
    out_ += brackets[1];
  }
  void begin_line(int level) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_) * static_cast<std::size_t>(level), ' ');
  }

  int indent_;
  Handler handler_;
  bool ascii_;
  std::string out_;
};

template <bool kOrdered>
std::string written(const BasicJson<kOrdered>& value, int indent, Handler handler, bool ascii = false) {
  Writer<kOrdered> writer(indent, handler, ascii);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace

template <bool kOrdered>
std::string BasicJson<kOrdered>::dump(int indent) const {
  return written(*this, indent, Handler::strict);
}

template <bool kOrdered>
std::string BasicJson<kOrdered>::dump_replacing(int indent) const {
  return written(*this, indent, Handler::replace);
}

template <bool kOrdered>
std::string BasicJson<kOrdered>::dump_ascii() const {
  return written(*this, -1, Handler::strict, /*ascii=*/true);
}

template std::string Json::dump(int) const;
template std::string OrderedJson::dump(int) const;
template std::string Json::dump_replacing(int) const;
template std::string OrderedJson::dump_replacing(int) const;
template std::string Json::dump_ascii() const;
template std::string OrderedJson::dump_ascii() const;

}  // namespace ganymede
