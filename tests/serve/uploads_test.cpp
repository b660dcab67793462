// Files that the user sends: what is kept, under which name, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "platforms/catalog.hpp"
#include "serve/form_options.hpp"
#include "serve/forms.hpp"
#include "support/errors.hpp"

namespace ganymede::serve {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
class UploadFolder : public testing::Test {
 protected:
  UploadFolder() {
    std::string name = (fs::temp_directory_path() / "ganymede-uploads-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~UploadFolder() override { fs::remove_all(folder); }

  /// The message with which a file is refused.
  static std::string refusal(UploadStore& store, const std::string& kind, const std::string& name,
                             const std::string& text) {
    try {
      store.add(kind, name, text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "taken";
  }

  fs::path folder;
  std::vector<std::string> remarks;
};

const std::string kTraceText{embedded_traces().front().text};
const std::string kPlatformText{platforms::catalog_text("ibm")};

TEST_F(UploadFolder, AreKeptAndFoundAgain) {
  {
    UploadStore store(folder, remarks);
    EXPECT_EQ(store.add("trace", "mine.json", kTraceText), 1);
    EXPECT_EQ(store.add("platform", "lab.json", kPlatformText), 2);
  }
  std::ofstream(folder / "3.json") << "{";
  std::ofstream(folder / "notes.txt") << "not the server's";
  UploadStore store(folder, remarks);
  EXPECT_THAT(remarks, testing::ElementsAre(HasSubstr("upload 3 is left out")));
  const Uploads all = store.all();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]->name, "mine.json");
  EXPECT_EQ(all[0]->text, kTraceText);
  EXPECT_EQ(all[1]->platform->name, "ibm");
  store.forget(1);
  EXPECT_THROW(store.forget(1), NoSuchUpload);
  EXPECT_FALSE(fs::exists(folder / "1.json"));
  EXPECT_EQ(store.add("trace", "again.json", kTraceText), 4);  // no number is used twice
}

TEST_F(UploadFolder, OfWhichReadingWouldTakeTheMachinesMemoryAreNotRead) {
  UploadStore store(folder, remarks);
  std::string text = "[{}";
  while (text.size() < UploadStore::kMaxBytes - 4) text += ",{}";
  EXPECT_THAT(message_of<ConfigError>([&] { store.add("trace", "many.json", text + "]"); }),
              HasSubstr("many.json: reading it would take about "));
}

TEST_F(UploadFolder, NamesAreOnlyShown) {
  UploadStore store(folder, remarks);
  const int id = store.add("trace", "../../../etc/cron.d/evil\n\x01.json", kTraceText);
  EXPECT_EQ(store.all().front()->name, "../../../etc/cron.d/evil??.json");
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path().filename().string());
  EXPECT_EQ(files, std::vector{std::to_string(id) + ".json"});
  EXPECT_EQ(store.all().front()->file(), "trace-1.json");
  store.add("trace", "", kTraceText);
  EXPECT_EQ(store.all().back()->name, "file");
  store.add("trace", std::string(99, 'x') + "\xc3\xa9", kTraceText);  // cut within the last character
  EXPECT_EQ(store.all().back()->name, std::string(99, 'x'));
  EXPECT_THAT(refusal(store, "trace", "\xff", kTraceText), HasSubstr("UTF-8"));
}

TEST_F(UploadFolder, WhatIsNoTraceOrPlatformIsRefused) {
  UploadStore store(folder, remarks);
  EXPECT_THAT(refusal(store, "trace", "a.json", ""), HasSubstr("a.json"));
  EXPECT_THAT(refusal(store, "trace", "a.json", "\x89PNG"), HasSubstr("a.json"));
  EXPECT_THAT(refusal(store, "trace", "a.json", "{}"), HasSubstr("schema"));
  EXPECT_THAT(refusal(store, "trace", "a.json", std::string(100'000, '[')), HasSubstr("200 levels"));
  EXPECT_THAT(refusal(store, "trace", "a.json", kPlatformText), HasSubstr("a.json: /schema"));
  EXPECT_THAT(refusal(store, "platform", "a.json", kTraceText), HasSubstr("a.json: /schema"));
  EXPECT_THAT(refusal(store, "checkpoint", "a.json", kTraceText), HasSubstr("kind"));
  EXPECT_THAT(refusal(store, "trace", "a.json", std::string(UploadStore::kMaxBytes + 1, ' ')), HasSubstr("at most"));
  EXPECT_TRUE(fs::is_empty(folder));
  for (std::size_t i = 0; i < UploadStore::kMaxFiles; ++i) store.add("platform", "lab.json", kPlatformText);
  EXPECT_THAT(refusal(store, "platform", "lab.json", kPlatformText), HasSubstr("forget one"));
}

TEST_F(UploadFolder, AFormTakesThemAlong) {
  UploadStore store(folder, remarks);
  store.add("trace", "mine.json", kTraceText);
  store.add("platform", "lab.json", kPlatformText);
  const platforms::Instance& instance =
      *std::find_if(platforms::catalog("ibm").instances.begin(), platforms::catalog("ibm").instances.end(),
                    [](const platforms::Instance& one) {
                      return !one.prices.empty() && one.prices[0].market == platforms::Market::on_demand;
                    });
  const Offer offer{{}, store.all()};
  const int batch = store.all()[0]->trace->batches.front().batch;
  Json form = Json::parse(R"({ "kind": "compare", "workload": { "trace": "upload:1", "images": 1000 },
    "platforms": [ { "catalog": "upload:2" } ], "gpus": [1], "schemes": ["ring"], "policies": ["fixed"],
    "seeds": { "first": 1, "count": 1 } })");
  form["workload"]["batch_per_gpu"] = batch;
  form["platforms"][0]["region"] = instance.prices[0].region;
  form["platforms"][0]["instance"] = instance.name;
  const Form read = read_form(JsonNode::parse(form.dump(), "form"), offer);
  const Json study = Json::parse(read.input);
  EXPECT_EQ(study["workload"]["trace"], "trace-1.json");
  EXPECT_EQ(study["platforms"][0]["catalog"], "platform-2.json");
  ASSERT_EQ(read.files.size(), 2U);
  EXPECT_EQ(read.files[0].name, "trace-1.json");
  EXPECT_EQ(read.files[0].text, kTraceText);
  EXPECT_EQ(read.files[1].text, kPlatformText);
  // One kind does not stand for the other, and a forgotten file for nothing.
  for (const auto& [pointer, name] :
       {std::pair{"/workload/trace", "upload:2"}, std::pair{"/workload/trace", "upload:3"},
        std::pair{"/platforms/0/catalog", "upload:1"}}) {
    Json wrong = form;
    wrong[JsonPointer(pointer)] = name;
    EXPECT_THROW(read_form(JsonNode::parse(wrong.dump(), "form"), offer), ConfigError) << pointer;
  }
}

}  // namespace
}  // namespace ganymede::serve
