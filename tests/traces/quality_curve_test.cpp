#include "traces/quality_curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/errors.hpp"
#include "common/json.hpp"

namespace ganymede::traces {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// FID 100, 50, 25 after `unit`, 2 and 4 `unit` images.
QualityCurve halving(int batch, double unit, std::uint64_t seed = 1) {
  return {batch, seed, "test", {{unit, 100, 1.5}, {2 * unit, 50, 2}, {4 * unit, 25, 3}}};
}

QualityCurves curves(std::vector<QualityCurve> of) { return {"mlp-gan", "builtin", "glyphs-v2", std::move(of)}; }

TEST(ImagesFor, InterpolatesAlongACurve) {
  const ImagesNeeded at = images_for(curves({halving(64, 1000)}), {75, {}}, 64);
  EXPECT_NEAR(at.images, 1000 * std::sqrt(2), 1e-6);  // half of the way from 100 to 50, half of a doubling
  EXPECT_THAT(at.notes, IsEmpty());
  EXPECT_NEAR(images_for(curves({halving(64, 1000)}), {25, {}}, 64).images, 4000, 1e-6);
  EXPECT_NEAR(images_for(curves({halving(64, 1000)}), {200, {}}, 64).images, 1000, 1e-6);  // met before the first point
  EXPECT_NEAR(images_for(curves({halving(64, 1000)}), {{}, 2.5}, 64).images, 2000 * std::sqrt(2), 1e-6);
}

TEST(ImagesFor, CountsTheFirstTime) {
  // 60 is reached at 2,000 images, lost again, and passed for good later: the first time counts.
  const QualityCurve rough{64, 1, "", {{1000, 100, 1}, {2000, 60, 1}, {3000, 90, 1}, {4000, 40, 1}}};
  EXPECT_NEAR(images_for(curves({rough}), {60, {}}, 64).images, 2000, 1e-6);
  // 40 of the 50 points from 90 to 40: at 3,000 images it was far from 50, whatever it had been before.
  EXPECT_NEAR(images_for(curves({rough}), {50, {}}, 64).images, 3000 * std::pow(4.0 / 3, 0.8), 1e-6);
}

TEST(ImagesFor, ALargerBatchNeedsMore) {
  const QualityCurves both = curves({halving(64, 1000), halving(256, 2000)});
  EXPECT_NEAR(images_for(both, {50, {}}, 128).images, 2000 * std::sqrt(2), 1e-6);
  const ImagesNeeded beyond = images_for(both, {50, {}}, 1024);
  EXPECT_NEAR(beyond.images, 4000, 1e-6);
  EXPECT_THAT(beyond.notes, ElementsAre(HasSubstr("no quality was recorded at a batch of 1024")));
  EXPECT_NEAR(images_for(both, {50, {}}, 16).images, 2000, 1e-6);
}

TEST(ImagesFor, TellsTheSpreadOfSeeds) {
  const ImagesNeeded at = images_for(curves({halving(64, 1000, 1), halving(64, 4000, 2)}), {50, {}}, 64);
  EXPECT_NEAR(at.images, 4000, 1e-6);
  EXPECT_NEAR(at.low, 2000, 1e-6);
  EXPECT_NEAR(at.high, 8000, 1e-6);
}

TEST(ImagesFor, SaysWhatWasNeverReached) {
  QualityCurve poor = halving(64, 1000, 2);
  for (auto& point : poor.points) point.fid += 100;
  const ImagesNeeded at = images_for(curves({halving(64, 1000), poor}), {50, {}}, 64);
  EXPECT_NEAR(at.images, 2000, 1e-6);
  EXPECT_THAT(at.notes, ElementsAre(HasSubstr("1 of 2 trainings at batch 64 never reach the target")));
  try {
    images_for(curves({poor}), {50, {}}, 64);
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the best FID is 125 (in the features of glyphs-v2)"));
  }
}

TEST(QualityCurves, ReadBackWhatWasWritten) {
  const QualityCurves written = curves({halving(64, 1000), halving(128, 1500, 7)});
  const QualityCurves read = read_quality_curves(JsonNode::parse(write_quality_curves(written), "curve"));
  EXPECT_EQ(read.features, "glyphs-v2");
  ASSERT_EQ(read.curves.size(), 2U);
  EXPECT_EQ(read.curves[1].seed, 7U);
  EXPECT_EQ(read.curves[1].points[2].images, 6000);
  EXPECT_EQ(read.curves[1].points[2].inception_score, 3);
}

class BadCurves : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadCurves, AreLocated) {
  const std::string text =
      std::string(R"({ "schema": "ganymede.quality/1", "model": "m", "dataset": "d", "features": "f",
    "curves": [ )") +
      GetParam().first + " ] }";
  try {
    read_quality_curves(JsonNode::parse(text, "curve.json"));
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().second));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, BadCurves,
    testing::Values(std::pair{"", "/curves: found an array of 0, expected at least one training"},
                    std::pair{R"({ "batch": 64, "points": [] })", "/curves/0/points"},
                    std::pair{R"({ "batch": 0, "points": [] })", "/curves/0/batch"},
                    std::pair{R"({ "batch": 64, "points": [ { "images": 9, "fid": 1, "inception_score": 1 },
                                                            { "images": 8, "fid": 1, "inception_score": 1 } ] })",
                              "/curves/0/points/1/images: found 8, expected more images than at the point before"},
                    std::pair{R"({ "batch": 64, "points": [ { "images": 9, "fid": -1, "inception_score": 1 } ] })",
                              "/curves/0/points/0/fid"}));

}  // namespace
}  // namespace ganymede::traces
