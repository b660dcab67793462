// No program may have two types of the same name: the linker keeps only one of their destructors, which then also
// destroys objects of the other type. Compilers do not see this, and the linker's -Wodr needs link-time optimization.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tree.hpp"
#include "type_names.hpp"

namespace ganymede {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  for (const TypeDefinition& type : types_defined_in(text)) names.push_back(type.name);
  return names;
}

TEST(TypeNames, AreThoseThatTheLinkerSees) {
  EXPECT_THAT(names_in(R"(
#define MACRO struct InMacro { \
    int x; };
struct Plain { struct Inner { int x; }; };
namespace a { namespace b::c {
class [[nodiscard]] Attributed final : public Base<int> { void f() { struct Local {}; } };
template <class T, typename U = std::vector<T>> struct Template { };
template <> struct std::hash<Name> { };
enum class Enumeration : int { one };
union alignas(8) Union { };
inline namespace v1 { struct Inline {}; }
} struct After { const char* brace = "{"; char c = '{'; int n = 1'000; /* { */ }; }  // {
extern "C" { struct InC { }; }
)"),
              ElementsAre("Plain", "a::b::c::Attributed", "a::b::c::Template", "a::b::c::std::hash<Name>",
                          "a::b::c::Enumeration", "a::b::c::Union", "a::b::c::v1::Inline", "a::After", "InC"));
}

TEST(TypeNames, AreNoDeclarationsAndNothingHidden) {
  EXPECT_THAT(names_in(R"x(
struct Declared;
struct Declared make(struct Declared* of) { return *of; }
struct Declared variable = { 1 };
template <class T> void f(T) { class Local { }; }
namespace { struct Hidden { }; namespace inside { struct HiddenToo { }; } }
namespace a { namespace { enum HiddenAgain { one }; } }
const char* text = R"(struct InText { };)"; // struct InComment { };
enum { unnamed };
auto lambda = [] { struct InLambda { }; };
)x"),
              IsEmpty());
}

TEST(TypeNames, OfTwoFilesOfOneProgramAreFound) {
  const std::string plan = "#pragma once\nnamespace ganymede {\nstruct Candidate { std::string label; };\n}\n";
  const std::string report = "namespace ganymede {\n\nstruct Candidate {\n  int x;\n};\n}\n";
  EXPECT_THAT(types_defined_twice({{"plan/candidates.hpp", plan}, {"report/candidates.hpp", report}}),
              ElementsAre("ganymede::Candidate is defined in plan/candidates.hpp:3 and in report/candidates.hpp:3"));
  EXPECT_THAT(types_defined_twice({{"plan/candidates.hpp", plan}, {"kernel/a.cpp", report}}).size(), 1U);
  // A test program contains the types of the tree, but not those of another test program.
  EXPECT_THAT(types_defined_twice({{"plan/candidates.hpp", plan}, {"tests/sim/run/a_test.cpp", report}}).size(), 1U);
  EXPECT_THAT(types_defined_twice({{"tests/plan/a_test.cpp", plan}, {"tests/plan/b_test.cpp", report}}).size(), 1U);
  EXPECT_THAT(types_defined_twice({{"tests/support/a.hpp", plan}, {"tests/plan/b_test.cpp", report}}).size(), 1U);
  EXPECT_THAT(types_defined_twice({{"tests/plan/a_test.cpp", plan}, {"tests/report/b_test.cpp", report}}), IsEmpty());
  EXPECT_THAT(types_defined_twice({{"bench/a.cpp", plan}, {"bench/b.cpp", report}}), IsEmpty());
  // Types with the same name may be in different namespaces or hidden from the linker.
  EXPECT_THAT(types_defined_twice({{"a.hpp", plan}, {"b.hpp", "namespace ganymede::b { struct Candidate { }; }"}}),
              IsEmpty());
  EXPECT_THAT(types_defined_twice({{"a.hpp", plan}, {"b.cpp", "namespace ganymede { namespace {" + report + "} }"}}),
              IsEmpty());
}

TEST(Tree, DefinesEachTypeOnce) {
  std::vector<TypeFile> files;
  std::size_t types = 0;
  for (const Source& source : tree())
    if (source.is_cpp() || source.path.ends_with(".cu") || source.path.ends_with(".cuh") || source.path.ends_with(".h"))
      files.push_back({source.path, source.text});
  for (const TypeFile& file : files) types += types_defined_in(file.text).size();
  EXPECT_GT(types, 200U) << "most of the tree's types were not found";
  EXPECT_THAT(types_defined_twice(files), IsEmpty());
}

}  // namespace
}  // namespace ganymede
