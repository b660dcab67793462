#include "documents/schemas.hpp"

#include <array>

#include "common/json_value.hpp"
#include "documents/forms.hpp"
#include "documents/result.hpp"

namespace ganymede::documents {
namespace {

template <class Document>
OrderedJson schema(std::string_view title, std::string_view says) {
  return schema_of(described(Document{}), title, says, /*strict=*/true);
}

constexpr std::array kDocuments = {
    DescribedDocument{
        "result", [] { return schema<Result>(kResultSchema, "what a run comes to: ganymede simulate --format json"); }},
};

}  // namespace

std::span<const DescribedDocument> described_documents() { return kDocuments; }

}  // namespace ganymede::documents
