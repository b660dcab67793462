#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "traces/run_pace.hpp"

namespace ganymede::traces {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Lines that count within an epoch: with a logger's time, or with times of their own.
TEST(EpochLines, AreAddedUp) {
  const auto points = [](const std::string& text) {
    const auto pace = read_run_pace(text, "log.txt");
    EXPECT_TRUE(pace) << text;
    std::vector<std::pair<double, double>> out;
    for (const RunPace::Point& point : pace ? pace->points : decltype(pace->points)())
      out.emplace_back(point.count, point.seconds);
    return out;
  };
  EXPECT_THAT(points("2026-11-03 08:00:00,1 INFO Epoch: [0][500/1000]\tTime 0.2 (0.2)\n"
                     "2026-11-03 08:01:00,1 INFO Epoch: [1][  500/1000]\tTime 0.2 (0.2)\n"),
              ElementsAre(Pair(500, 0), Pair(1500, 60)));
  EXPECT_THAT(
      points("Epoch: [0][1000/1000]\tTime  0.300 ( 0.200)\tData 0.1\nEpoch: [1][ 500/1000]\tTime 0.1 ( 0.100)\n"),
      ElementsAre(Pair(1000, 200), Pair(1500, 250)));
  EXPECT_THAT(points("[08:00:00 2026-11-03] x\n2026-11-03 08:00:00 Epoch [1/20], Step [100/400], D: 1\n"
                     "2026-11-03 08:02:00 [Epoch 2/20] [Batch 100/400] [D loss: 0.7]\n"),
              ElementsAre(Pair(100, 0), Pair(500, 120)));
  const std::string keras =
      "Epoch 1/9\n100/500 [==>...] - ETA: 50s\r500/500 [=====] - 61s 122ms/step - d: 1\n"
      "1/1 [=====] - 0s 12ms/step\nEpoch 2/9\n500/500 [=====] - 59s 118ms/step\n";
  EXPECT_THAT(points(keras), ElementsAre(Pair(0, 0), Pair(500, 61), Pair(1000, 120)));
  EXPECT_THAT(points("Epoch 1/9\n500/500 - 61s - 122ms/step - d: 1\n"), ElementsAre(Pair(0, 0), Pair(500, 61)));
  EXPECT_THAT(points("\x1b[1m500/500\x1b[0m \x1b[32m\u2501\u2501\x1b[0m\x1b[37m\x1b[0m \x1b[1m61s\x1b[0m 122ms/step\n"),
              ElementsAre(Pair(0, 0), Pair(500, 61)));
  // 250 images: the second epoch's first line comes 50 images after its begin, and 100 after the line before.
  EXPECT_THAT(
      points("== Training Loss ==\n(epoch: 1, iters: 100, time: 0.100, data: 0.2) D_A: 1\n"
             "(epoch: 1, iters: 200, time: 0.100, data: 0.2) D_A: 1\n(epoch: 2, iters: 50, time: 0.200, data: 0.2)\n"),
      ElementsAre(Pair(0, 0), Pair(100, 10), Pair(200, 20), Pair(300, 40)));
  EXPECT_THAT(points("Epoch 0: 100%|##| 50/50 [01:00<00:00, 1it/s]\nEpoch 1: 100%|##| 50/50 [01:10<00:00, 1it/s]\n"),
              ElementsAre(Pair(50, 60), Pair(100, 130)));
}

// FIDs of lines of text: of an evaluation the step is that of the last line of training, or its own.
TEST(EpochLines, FidsOfText) {
  const auto fids = [](const std::string& text) {
    const auto pace = read_run_pace(text, "log.txt");
    std::vector<std::pair<double, double>> out;
    EXPECT_TRUE(pace) << text;
    for (const RunPace::Fid& fid : pace ? pace->fids : decltype(pace->fids)()) out.emplace_back(fid.count, fid.fid);
    return out;
  };
  EXPECT_THAT(
      fids("2026-11-03 08:00:00,1 - INFO - Iter(train) [ 1000/9000] lr: 1e-3\n"
           "2026-11-03 08:01:00,1 - INFO - Iter(val) [100/100]  FID-Full-50k/fid: 41.5  FID-Full-50k/mean: 1\n"),
      ElementsAre(Pair(1000, 41.5)));
  // A count that nobody trains to is no point, before which there is none.
  EXPECT_THAT(fids("2026-11-03 08:00:00 step 9e99 fid: 5\n2026-11-03 08:00:00 step 5 fid: 7\n"),
              ElementsAre(Pair(5, 7)));
  EXPECT_THAT(fids("2026-11-03 08:01:00,1 - mmgen - INFO - Iter(val) [1000]\tfid: 41.5, is: 3.2\n"),
              ElementsAre(Pair(1000, 41.5)));
  EXPECT_THAT(fids("2026-11-03 08:01:00 step 500 FID 60.25 fake\n2026-11-03 08:02:00 step 600 confidence 0.9\n"
                   "2026-11-03 08:03:00 step 700 fid=-1\n2026-11-03 08:03:00 step 800 fid: nan\n"),
              ElementsAre(Pair(500, 60.25)));
}

}  // namespace
}  // namespace ganymede::traces
