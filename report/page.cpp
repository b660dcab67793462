#include "report/page.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <optional>

#include "common/embedded.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"
#include "report/plan_answer.hpp"
#include "report/runs.hpp"

namespace ganymede::report {
namespace {
/// Number of candidates whose bill and events are shown.
constexpr std::size_t kMaxDetailed = 60;

std::string_view part(std::string_view name) {
  for (const EmbeddedText& file : embedded_report_page())
    if (file.name == name) return file.text;
  return {};
}

/// The page's script. The files share one scope, which other scripts cannot see.
std::string script() {
  std::string out(part("echarts.bundle.js"));
  out += "\n(() => {\n\"use strict\";\n";
  for (const char* file :
       {"data.js", "draw.js", "candidates.js", "filters.js", "comparison.js", "details.js", "page.js"})
    out += part(file);
  return out + "})();\n";
}

/// The script's hash as a content security policy names it.
std::string hash_of(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr);
  constexpr std::size_t kBase64Size = 128;  // bytes: base64 of a hash of at most 64 bytes, and the terminating zero
  std::array<unsigned char, kBase64Size> base64{};
  const int size = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(length));
  return "'sha256-" + std::string(base64.begin(), base64.begin() + size) + "'";
}

/// JSON for the inside of a script element, with nothing in it that could end the element.
std::string embedded_json(const OrderedJson& data) {
  const std::string text = data.dump_replacing();
  std::string out;
  out.reserve(text.size());
  for (const char c : text)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

/// The Pareto set, beginning with its cheapest candidate, then the others in their order.
std::vector<std::size_t> detailed(const std::vector<ReportCandidate>& candidates, std::vector<std::size_t> pareto) {
  std::vector<std::size_t> out(pareto.rbegin(), pareto.rend());
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (std::find(pareto.begin(), pareto.end(), i) == pareto.end()) out.push_back(i);
  std::erase_if(out, [&](std::size_t i) { return candidates[i].run == nullptr; });
  if (out.size() > kMaxDetailed) out.resize(kMaxDetailed);
  return out;
}

std::string document_kind(const Json& document) {
  const auto schema = document.at("schema").get<std::string>();
  return schema == "ganymede.result/1"           ? "result"
         : schema == "ganymede.sweep/1"          ? "sweep"
         : schema == "ganymede.plan/1"           ? "plan"
         : schema == "ganymede.cluster-result/1" ? "cluster"
         : schema == "ganymede.rehearsal/1"      ? "rehearsal"
                                                 : "validation";
}

std::string title_of(const PageInput& page) {
  const Json& document = page.document;
  if (page.kind == "sweep") return document.at("study").get<std::string>();
  if (page.kind == "validation") return "Predicted against published measurements";
  if (page.kind == "rehearsal") return "A life, predicted and rehearsed: " + page.rehearsal->scenario;
  if (page.kind == "cluster")
    return fmt::format("{} jobs on {} GPUs, {}", page.cluster->summary.jobs, page.cluster->summary.gpus,
                       page.cluster->scheduler);
  if (page.plan != nullptr)
    return fmt::format("What to rent: {}, {}", page.plan->request.model, plan_target(page.plan->request));
  const ReportCandidate& run = page.candidates.front();
  return fmt::format("{}, {}", run.rented, run.infrastructure);
}

std::string tool_of(const PageInput& page) {
  if (!page.runs.empty()) return page.runs.front().tool;
  if (page.plan != nullptr) return page.plan->tool;
  if (page.cluster) return page.cluster->provenance.tool;
  if (page.rehearsal) return page.rehearsal->measured.tool;
  return "ganymede " GANYMEDE_VERSION;
}

std::string html_of(const Section& section) {
  std::string out = fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n",
                                section.id, escaped(section.title));
  if (!section.about.empty()) out += "<p class=about>" + section.about + "</p>\n";
  std::string charts;
  for (const auto& [name, label] : section.charts)
    charts += fmt::format("<div class=chart id=\"chart-{}\" role=img aria-label=\"{}\"></div>\n", name, escaped(label));
  return out + (section.tables_first ? section.tables + charts : charts + section.tables) + "</section>\n";
}

}  // namespace

std::string html_of(const Table& table, const std::string& caption, const std::string& id) {
  constexpr std::size_t kLong = 60;  // rows; a browser lays out those of a longer table when they come into view
  return fmt::format(
      "<div class=\"scroll{3}\" tabindex=0 role=region "
      "aria-label=\"{0}\"><table{1}>\n<caption>{0}</caption>\n<thead>{2}"
      "</thead><tbody>\n{4}</tbody>\n</table></div>\n",
      escaped(caption), id.empty() ? "" : " id=\"" + id + "\"", table.html_head(), table.size() > kLong ? " long" : "",
      table.html_body());
}

std::string key_html(const std::vector<std::pair<std::string, std::string>>& names_and_colors) {
  std::string out = "<ul class=key>";
  for (const auto& [name, color] : names_and_colors)
    out += fmt::format(
        "<li><svg class=swatch viewBox=\"0 0 1 1\" aria-hidden=true><rect width=1 height=1 fill=\"{}\"/></svg>{}</li>",
        color, escaped(name));
  return out + "</ul>\n";
}

std::string report_page(const Json& document, const std::map<std::string, std::string>& words) {
  const std::string kind = document_kind(document);
  std::vector<documents::Result> runs;
  if (kind == "result") runs.push_back(documents::result_in(document));
  if (kind == "sweep") runs = runs_of(document);
  std::optional<documents::Plan> plan;
  if (kind == "plan") plan = documents::plan_in(document);
  PageInput page{document, runs, plan ? &*plan : nullptr, kind, {}, {}, {}, words};
  if (kind == "cluster") page.cluster = documents::read_cluster_result(JsonNode::wrap(document, "", "/"));
  if (kind == "validation") page.validation = documents::validation_in(document);
  if (kind == "rehearsal") page.rehearsal = documents::rehearsal_in(document);
  page.candidates = plan ? candidates_of(*plan) : kind == "result" ? candidate_of(runs.front()) : candidates_of(runs);
  page.pareto = pareto_of(page.candidates);
  page.detailed = detailed(page.candidates, page.pareto);
  std::string body;
  std::string links;
  for (const Section& section : sections_of(page)) {
    body += html_of(section);
    links += fmt::format("<a href=\"#{}\">{}</a>\n", section.id, escaped(section.title));
    if (page.kind == "validation" && links.find("<details>") == std::string::npos)
      links += "<details><summary>The studies</summary>\n";
  }
  if (page.kind == "validation") links += "</details>\n";
  const std::string style(part("page.css"));
  const std::string code = script();
  const std::string title = title_of(page);
  return fmt::format(
      "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; style-src {}; "
      "img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<meta name=color-scheme content=\"light "
      "dark\">\n"
      "<title>{} - Ganymede</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<header><p class=brand>Ganymede</p><h1>{}</h1>{}{}<nav "
      "aria-label=Sections>{}</nav></header>\n"
      "<noscript><p class=about>Without scripts there are no charts; every number is in the tables.</p></noscript>\n"
      "<main>\n{}</main>\n"
      "<footer><p>Written by {}. This page needs nothing else: no network, no file beside it. Charts: Apache ECharts, "
      "Apache License 2.0.</p></footer>\n"
      "<script type=\"application/json\" id=data>{}</script>\n<script>{}</script>\n</body>\n</html>\n",
      hash_of(code), hash_of(style), escaped(title), style, escaped(title),
      page.kind == "sweep" && document.contains("about")
          ? "<p class=about>" + escaped(document.at("about").get<std::string>()) + "</p>\n"
          : "",
      answer_html(page) + words_html(page), links, body, escaped(tool_of(page)), embedded_json(page_data(page)), code);
}

}  // namespace ganymede::report
