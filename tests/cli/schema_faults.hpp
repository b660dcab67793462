#pragma once
// A document held against a schema that the program prints.

#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {

/// The errors of a document by the schema of its format; empty if it is valid.
inline std::string faults(const std::string& format, const Json& document) {
  const auto text = nlohmann::json::parse(run_program("schema " + format).out);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  const valijson::adapters::NlohmannJsonAdapter of_schema(text);
  parser.populateSchema(of_schema, schema);
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  valijson::ValidationResults results;
  const auto document_text = nlohmann::json::parse(document.dump());
  const valijson::adapters::NlohmannJsonAdapter of_document(document_text);
  if (validator.validate(schema, of_document, &results)) return "";
  std::string all;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    for (const std::string& part : error.context) all += part;
    all += ": " + error.description + "\n";
  }
  return all.empty() ? "invalid" : all;
}

}  // namespace ganymede::cli
