#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "traces/run_pace.hpp"

namespace ganymede::traces {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::vector<std::pair<double, double>> points(const std::string& text) {
  const auto pace = read_run_pace(text, "log.txt");
  EXPECT_TRUE(pace) << text;
  std::vector<std::pair<double, double>> out;
  for (const RunPace::Point& point : pace ? pace->points : decltype(pace->points)())
    out.emplace_back(point.count, point.seconds);
  return out;
}

// Lines that count within an epoch: with a logger's time, or with times of their own.
TEST(EpochLines, AreAddedUp) {
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
              ElementsAre(Pair(0, 0), Pair(50, 60), Pair(100, 130)));
}

// A step beside an epoch that goes on through all epochs is no step within it, however it is written.
TEST(EpochLines, OrCountOnThroughAllEpochs) {
  for (const char* line : {"2026-11-03 08:0{}:00,1 INFO epoch {} step {}/30000 loss 1\n",
                           "2026-11-03 08:0{}:00,1 INFO [epoch {}/10] [iter {}/30000] loss 1\n",
                           "2026-11-03 08:0{0}:00,1 INFO step {2} epoch {1}/10 batch 5/100\n",
                           "2026-11-03 08:0{0}:00,1 INFO step: {2} | epoch: {1} | 12/345 samples\n",
                           "2026-11-03 08:0{0}:00,1 INFO | epoch {1} | 200/ 3000 batches | lr 1.0 | step {2}\n"}) {
    std::string text;
    for (int at = 0; at < 6; ++at) text += fmt::format(fmt::runtime(line), at, 1 + at / 2, 1000 * (at + 1));
    EXPECT_THAT(points(text), ElementsAre(Pair(1000, 0), Pair(2000, 60), Pair(3000, 120), Pair(4000, 180),
                                          Pair(5000, 240), Pair(6000, 300)))
        << line;
  }
  // The third line tells that the steps are those of an epoch, of which few have a line: the first two count no more.
  EXPECT_THAT(points("2026-11-03 08:00:00 Epoch [1/9], Step [300/1000]\n2026-11-03 08:10:00 Epoch [2/9], Step "
                     "[600/1000]\n2026-11-03 08:20:00 Epoch [4/9], Step [200/1000]\n"),
              ElementsAre(Pair(3200, 1200)));
}

// The mean time of a step, also of steps behind an epoch's last line, but not of loading data, nor of milliseconds.
TEST(EpochLines, KnowTheTimeOfAStep) {
  for (const char* time : {"Time 0.300 (0.200)", "Batch Time 300.0 (200.0) ms\tLoss 1 (2)", "time: 0.30s (0.20s)",
                           "Data time 0.001 (0.002)  Time 0.3 (0.2)"})
    EXPECT_THAT(points(fmt::format("Epoch: [0][0/1000]\t{0}\nEpoch: [0][900/1000]\t{0}\nEpoch: [1][0/1000]\t{0}\n"
                                   "Epoch: [1][900/1000]\t{0}\n",
                                   time)),
                ElementsAre(Pair(0, 0), Pair(900, testing::DoubleEq(180)), Pair(1000, testing::DoubleEq(200)),
                            Pair(1900, testing::DoubleEq(380))))
        << time;
  EXPECT_FALSE(read_run_pace("Epoch: [0][900/1000]\tData time 0.1 (0.1)\n", "log.txt"));
}

TEST(EpochLines, ImagesAndSamplesAreNoSteps) {
  EXPECT_FALSE(
      read_run_pace("2026-11-01 10:00:00 Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.3\n"
                    "2026-11-01 10:01:00 Train Epoch: 1 [6400/60000 (11%)]\tLoss: 2.3\n",
                    "log.txt"));
  EXPECT_FALSE(read_run_pace("2026-11-01 10:01:00 epoch 1 6400/60000 samples\n", "log.txt"));
  EXPECT_FALSE(read_run_pace("Epoch 1/3\n60000/60000 [=====] - 61s 1ms/sample - loss: 1\n", "log.txt"));
  EXPECT_FALSE(read_run_pace("Train on 60000 samples\n60000/60000 [=====] - 61s 1ms/step\n", "log.txt"));
}

// An evaluation before the training, a log in UTF-16 as some shells write it, and a byte order mark.
TEST(EpochLines, OfKerasAndOfOtherEncodings) {
  EXPECT_THAT(points("79/79 [=====] - 5s 60ms/step\nEpoch 1/9\n500/500 [=====] - 61s 122ms/step\n"
                     "79/79 [=====] - 5s 60ms/step\nEpoch 2/9\n500/500 [=====] - 59s 118ms/step\n"),
              ElementsAre(Pair(0, 0), Pair(500, 61), Pair(1000, 120)));
  std::string wide = "\xff\xfe";
  for (const char letter : std::string("Epoch 1/9\n500/500 #### 61s 122ms/step\n"))
    wide += letter == '#' ? std::string("\x01\x25") : std::string{letter, '\0'};
  EXPECT_THAT(points(wide), ElementsAre(Pair(0, 0), Pair(500, 61)));
  EXPECT_THAT(points("\xef\xbb\xbf"
                     "2026-11-01 10:00:00 step 100\n2026-11-01 10:05:00 step 200\n"),
              ElementsAre(Pair(100, 0), Pair(200, 300)));
}

TEST(EpochLines, BeginWhereTheLogDoes) {
  EXPECT_THAT(points("2026-11-01 10:00:00,1 [0/25][50/1583]\tLoss_D: 1\n2026-11-01 10:10:00,1 [1/25][0/1583]\tL: 1\n"),
              ElementsAre(Pair(50, 0), Pair(1583, 600)));
  EXPECT_THAT(points("Epoch: [30][0/1000]\tTime 0.3 (0.2)\nEpoch: [31][1000/1000]\tTime 0.3 (0.2)\n"),
              ElementsAre(Pair(30000, 0), Pair(32000, 400)));
}

// CycleGAN's loss_log.txt, to which a training appends when it begins again or goes on.
TEST(EpochLines, ThatWereSetBackGoBack) {
  const std::string once =
      "(epoch: 1, iters: 100, time: 0.100, data: 0.2) D_A: 1\n(epoch: 1, iters: 200, time: 0.100, data: 0.2) D_A: 1\n"
      "(epoch: 2, iters: 50, time: 0.200, data: 0.2)\n";
  const auto thrice = ElementsAre(Pair(0, 0), Pair(100, 10), Pair(200, 20), Pair(300, 40));
  EXPECT_THAT(points(once + once), thrice);
  EXPECT_THAT(points(once + "(epoch: 1, iters: 200, time: 0.100, data: 0)\n(epoch: 2, iters: 50, time: 0.2)\n"),
              thrice);
}

// Another number before a bar is another epoch only if it is one; several ranks show the same steps.
TEST(EpochLines, BarsAreCountedOnce) {
  for (const auto& [first, again] : {std::pair("step 499", "step 500"), {"Loss: 1.02", "Loss: 0.98"}, {"G 12", "G 11"}})
    EXPECT_THAT(points(fmt::format("{0}:  50%|#| 250/500 [04:10<04:10, 1it/s]\r{0}: 100%|##| 500/500 [08:20<00:00]\r"
                                   "{1}: 100%|##| 500/500 [08:20<00:00]\n",
                                   first, again)),
                ElementsAre(Pair(250, 250), Pair(500, 500)))
        << first;
  std::string ranks;
  for (const char* epoch : {"0", "1"})
    for (const char* bar : {"0%|   | 0/500 [00:00<", "100%|##| 500/500 [08:20<00"})
      for (const char* rank : {"[rank0] ", "[rank1] "}) ranks += rank + fmt::format("Epoch {}: {}\r", epoch, bar);
  EXPECT_THAT(points(ranks), ElementsAre(Pair(0, 0), Pair(500, 500), Pair(1000, 1000)));
  EXPECT_THAT(points("[rank0] Epoch: [0][5/10] Time 1 (1)\n[rank0] Epoch: [1][5/10] Time 1 (1)\n"
                     "[rank1] Epoch: [0][5/10] Time 1 (1)\n[rank0] Epoch: [1][6/10] Time 1 (1)\n"),
              ElementsAre(Pair(5, 5), Pair(15, 15), Pair(16, 16)));
  EXPECT_THAT(points("Epoch 0: 100%|##| 500/500 [30:01<00:00]\nEpoch 1: 100%|##| 500/500 [30:01<00:00]\n"),
              ElementsAre(Pair(0, 0), Pair(500, 1801), Pair(1000, 3602)));
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
  EXPECT_THAT(fids("2026-11-03 08:01:00 step 500 fid: 1.2345e+02\n2026-11-03 08:01:00 step 600 best_fid: 11.1\n"
                   "2026-11-03 08:01:00 step 700 best FID: 11.1 FID: 45e0\n2026-11-03 08:01:00 step 800 fid_best 3\n"
                   "{\"step\": 900, \"elapsed\": 1, \"best_fid\": 11.1}\n"),
              ElementsAre(Pair(500, 123.45), Pair(700, 45)));
}

}  // namespace
}  // namespace ganymede::traces
