// Logs of other programs, each written here in its dialect: how far the training was, when, and what paused it.

#include "traces/run_pace.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"
#include "traces/quality_log.hpp"

namespace ganymede::traces {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

std::vector<std::pair<double, double>> points_of(const RunPace& pace) {
  std::vector<std::pair<double, double>> out;
  for (const auto& point : pace.points) out.emplace_back(point.count, point.seconds);
  return out;
}

constexpr const char* kTicks =
    "Num images:  1922\n"
    "tick 0     kimg 0.0      time 45s          sec/tick 10.6    sec/kimg 1326.39 maintenance 34.6   gpumem 6.13\n"
    "{\"results\": {\"fid50k_full\": 418.0}, \"metric\": \"fid50k_full\", \"snapshot_pkl\": "
    "\"network-snapshot-000000.pkl\"}\n"
    "tick 1     kimg 4.0      time 13m 25s      sec/tick 291.6   sec/kimg 72.89   maintenance 468.3  gpumem 4.27\n"
    "tick 2     kimg 8.0      time 1d 02h 18m   sec/tick 292.8   sec/kimg 73.19   maintenance 0.1    gpumem 4.21\n"
    "{\"results\": {\"fid50k_full\": 120.5}, \"metric\": \"fid50k_full\", \"snapshot_pkl\": "
    "\"network-snapshot-000008.pkl\"}\n"
    "tick 3     kimg 12.0     tim";

TEST(RunPace, OfStyleGansLog) {
  const auto pace = read_run_pace(kTicks, "log.txt");
  ASSERT_TRUE(pace);
  EXPECT_TRUE(pace->counts_images);
  EXPECT_THAT(points_of(*pace), ElementsAre(Pair(0, 45), Pair(4000, 805), Pair(8000, 86400 + 7200 + 1080)));
  // The first tick's maintenance is the start of the program, the last one's is a part of the pace.
  ASSERT_THAT(pace->pauses, SizeIs(1));
  EXPECT_EQ(pace->pauses[0].count, 0);
  EXPECT_EQ(pace->pauses[0].seconds, 468.3);
  ASSERT_THAT(pace->fids, SizeIs(2));
  EXPECT_EQ(pace->fids[1].count, 8000);
  EXPECT_EQ(pace->reference, "fid50k_full");
  EXPECT_FALSE(pace->begin_unix_s);
}

std::string statistics(double kimg, double seconds, const std::string& more) {
  return fmt::format(
      "{{\"Loss/G/loss\": {{\"num\": 8, \"mean\": 6.5}}, \"Progress/kimg\": {{\"num\": 1, \"mean\": {}, \"std\": "
      "0.0}}, "
      "\"Timing/total_sec\": {{\"num\": 1, \"mean\": {}}}, \"Timing/sec_per_tick\": {{\"mean\": 100}}, "
      "\"Timing/maintenance_sec\": {{\"mean\": 10}}, \"timestamp\": {}{}}}\n",
      kimg, seconds, 1.7e9 + seconds, more);
}

TEST(RunPace, OfStyleGansStatistics) {
  const auto pace =
      read_run_pace(statistics(0.008, 50, "") + statistics(4, 160, ", \"Metrics/fid50k_full\": {\"mean\": 200.5}") +
                        "{\"Progress/kimg\": {\"num",
                    "stats.jsonl");
  ASSERT_TRUE(pace);
  EXPECT_THAT(points_of(*pace), ElementsAre(Pair(8, 50), Pair(4000, 160)));
  EXPECT_EQ(pace->begin_unix_s, 1.7e9);
  EXPECT_EQ(pace->skipped, 1U);
  ASSERT_THAT(pace->fids, SizeIs(1));
  EXPECT_EQ(pace->fids[0].fid, 200.5);
}

TEST(RunPace, OfStudioGan) {
  const auto pace = read_run_pace(
      "[INFO] 2021-12-09 20:46:38 > Start training!\n"
      "[INFO] 2021-12-09 20:48:56 > Step: 100, Progress: 0.1%, Elapsed: 0:02:18, Gen_loss: 0.6, Dis_loss: 1.9\n"
      "[INFO] 2021-12-10 20:48:56 > Step: 60000, Progress: 60.0%, Elapsed: 1 day, 0:00:18, Gen_loss: 0.6\n",
      "train.log");
  ASSERT_TRUE(pace);
  EXPECT_FALSE(pace->counts_images);
  EXPECT_THAT(points_of(*pace), ElementsAre(Pair(100, 138), Pair(60000, 86418)));
}

TEST(RunPace, OfMmEngineAndMmcv) {
  const auto pace = read_run_pace(
      "{\"env_info\": \"sys.platform: linux\", \"seed\": 1}\n"
      "{\"mode\": \"train\", \"epoch\": 1, \"iter\": 100, \"lr\": 0.002, \"time\": 0.5, \"data_time\": 0.01}\n"
      "{\"lr\": 0.002, \"data_time\": 0.01, \"time\": 0.25, \"iter\": 200, \"step\": 200}\n"
      "{\"FID-Full-50k/fid\": 33.5, \"step\": 200}\n",
      "vis.json");
  ASSERT_TRUE(pace);
  EXPECT_THAT(points_of(*pace), ElementsAre(Pair(100, 50), Pair(200, 75)));
  ASSERT_THAT(pace->fids, SizeIs(1));
  EXPECT_EQ(pace->fids[0].fid, 33.5);
}

TEST(RunPace, OfTablesThatOthersExport) {
  const auto wandb = read_run_pace(
      "\"_step\",\"_runtime\",\"_timestamp\",\"metrics/fid\"\n100,50.5,1700000050.5,\n200,101,1700000101,80.5\n"
      "300,NaN,1700000152,\n",
      "w.csv");
  ASSERT_TRUE(wandb);
  EXPECT_THAT(points_of(*wandb), ElementsAre(Pair(100, 50.5), Pair(200, 101)));
  EXPECT_EQ(wandb->begin_unix_s, 1.7e9);
  EXPECT_EQ(wandb->skipped, 1U);
  ASSERT_THAT(wandb->fids, SizeIs(1));
  const auto board = read_run_pace("Wall time,Step,Value\n1700005000.5,0,1.5\n1700005010.5,20,1.25\n", "b.csv");
  ASSERT_TRUE(board);
  EXPECT_THAT(points_of(*board), ElementsAre(Pair(0, 0), Pair(20, 10)));
  EXPECT_EQ(board->begin_unix_s, 1700005000.5);
}

// Rows in which something else was logged have no time, and charts of several runs have columns of each.
TEST(RunPace, EmptyCellsAreNoBrokenLines) {
  const auto one = read_run_pace("_step,_runtime,loss\n100,50,1\n150,,0.5\n200,101,\n", "w.csv");
  ASSERT_TRUE(one);
  EXPECT_THAT(points_of(*one), ElementsAre(Pair(100, 50), Pair(200, 101)));
  EXPECT_EQ(one->skipped, 0U);
  EXPECT_EQ(one->run, "");
  const auto two = read_run_pace(
      "Step,a - b - _runtime,a - b - _runtime__MIN,fast - _runtime,fast - fid\n100,50,50,10,9\n200,,,20,8\n", "w.csv");
  ASSERT_TRUE(two);
  EXPECT_THAT(points_of(*two), ElementsAre(Pair(100, 50)));
  EXPECT_EQ(two->skipped, 0U);
  EXPECT_EQ(two->run, "a - b");
  EXPECT_TRUE(two->fids.empty()) << "of another run";
}

TEST(RunPace, ARunThatWasSetBackCountsFromThere) {
  const auto pace = read_run_pace("step,unix_s\n10,100\n20,110\n30,120\n20,200\n30,210\n", "x.csv");
  ASSERT_TRUE(pace);
  EXPECT_THAT(points_of(*pace), ElementsAre(Pair(10, 0), Pair(20, 100), Pair(30, 110)));
}

TEST(RunPace, StepsThatNobodyTakesAreSkipped) {
  const auto pace = read_run_pace("step,unix_s\n10,100\n10000000000000000000,110\n30,1e300\n20,120\n", "x.csv");
  ASSERT_TRUE(pace);
  EXPECT_THAT(points_of(*pace), ElementsAre(Pair(10, 0), Pair(20, 20)));
  EXPECT_EQ(pace->skipped, 2U);
}

TEST(RunPace, OtherTextsAreNone) {
  for (const char* text :
       {"", "hello\n", "a,b\n1,2\n", "{\"a\": 1}\n", "{\n", "tick\ntick 1 kimg\n", "step,loss\n1,2\n"})
    EXPECT_FALSE(read_run_pace(text, "x")) << text;
}

TEST(RunPace, TheFidsOfALogAreQualityPoints) {
  const TemporaryFolder folder;
  const auto logs = read_quality_logs(folder.add("log.txt", kTicks), {});
  ASSERT_THAT(logs, SizeIs(1));
  ASSERT_THAT(logs[0].points, SizeIs(1));  // none for networks that were not trained yet
  EXPECT_EQ(logs[0].points[0].images, 8000);
  EXPECT_EQ(logs[0].points[0].fid, 120.5);
  const auto exported = read_quality_logs(folder.add("w.csv", "_step,_runtime,val/FID\n100,5,50.5\n"),
                                          {.runs = {}, .images_per_step = 64, .tag = {}});
  EXPECT_EQ(exported[0].points[0].images, 6400);
}

// json.dumps of Python writes what JSON does not have; the line is read all the same.
TEST(RunPace, NumbersThatJsonDoesNotHaveAreNothing) {
  const auto pace = read_run_pace(
      "{\"Loss/r1\": {\"mean\": NaN, \"std\": -Infinity}, \"Progress/kimg\": {\"mean\": 4.0}, \"Timing/total_sec\": "
      "{\"mean\": 300.0}}\n",
      "stats.jsonl");
  ASSERT_TRUE(pace);
  EXPECT_THAT(points_of(*pace), ElementsAre(Pair(4000, 300)));
  EXPECT_EQ(pace->skipped, 0U);
}

// BigGAN-PyTorch's metrics, the history of Weights & Biases, and a program's own lines.
TEST(RunPace, LinesThatSayWhenAreReadWhateverTheirNames) {
  const auto biggan = read_run_pace(
      "{\"itr\": 1000, \"IS_mean\": 5.0, \"FID\": 90.5, \"_stamp\": 1700000600.5}\n"
      "{\"itr\": 2000, \"IS_mean\": 6.0, \"FID\": 60.5, \"_stamp\": 1700001200.5}\n",
      "metrics.jsonl");
  ASSERT_TRUE(biggan);
  EXPECT_THAT(points_of(*biggan), ElementsAre(Pair(1000, 0), Pair(2000, 600)));
  EXPECT_EQ(*biggan->begin_unix_s, 1700000600.5);
  EXPECT_EQ(biggan->fids.back().fid, 60.5);
  const auto history = read_run_pace("{\"_step\": 10, \"_runtime\": 5.5, \"_timestamp\": 1700000005.5}\n", "h.jsonl");
  ASSERT_TRUE(history);
  EXPECT_THAT(points_of(*history), ElementsAre(Pair(10, 5.5)));
  EXPECT_EQ(*history->begin_unix_s, 1700000000);
  const auto own = read_run_pace("{\"kimg\": 200, \"fid\": 40.0}\n", "own.jsonl");
  ASSERT_TRUE(own);
  EXPECT_TRUE(own->counts_images);
  EXPECT_EQ(own->fids.front().count, 200e3);
}

// Weights & Biases' history as one array, and HuggingFace's document, which says the time of the whole alone.
TEST(RunPace, RecordsOfADocumentAreLines) {
  const auto history = read_run_pace(
      "[\n  {\"_step\": 10, \"_runtime\": 5.5, \"fid\": 80.0},\n  {\"_step\": 20, \"_runtime\": 10.5}\n]\n", "h.json");
  ASSERT_TRUE(history);
  EXPECT_THAT(points_of(*history), ElementsAre(Pair(10, 5.5), Pair(20, 10.5)));
  EXPECT_EQ(history->fids.front().fid, 80);
  const char* state =
      "{\n  \"global_step\": 500,\n  \"log_history\": [\n    {\"loss\": 2.0, \"step\": 100},\n"
      "    {\"eval_fid\": 40.5, \"eval_runtime\": 12.0, \"step\": 100},\n"
      "    {\"step\": 500, \"train_runtime\": 1250.0}\n  ]\n}\n";
  const auto trainer = read_run_pace(state, "trainer_state.json");
  ASSERT_TRUE(trainer);
  EXPECT_THAT(points_of(*trainer), ElementsAre(Pair(0, 0), Pair(500, 1250)));
  EXPECT_EQ(trainer->fids.front().count, 100);
  const TemporaryFolder folder;
  QualityLogOptions options;
  options.images_per_step = 64;
  const auto logs = read_quality_logs(folder.add("trainer_state.json", state), options);
  ASSERT_THAT(logs, SizeIs(1));
  EXPECT_EQ(logs[0].points.at(0).images, 6400);
}

// Bars are apart by carriage returns; the second epoch's goes on where the first ended, and an evaluation's is none.
TEST(RunPace, OfProgressBars) {
  const auto pace = read_run_pace(
      "Epoch 0:   0%|          | 0/1000 [00:00<?, ?it/s]\rEpoch 0:  50%|#####     | 500/1000 [04:10<04:10,  2.00it/s]\r"
      "Epoch 0: 100%|##########| 1000/1000 [08:20<00:00,  2.00it/s, loss=0.7]\n"
      "generating: 100%|##########| 50/50 [00:20<00:00,  2.50it/s]\n"
      "Epoch 1:  10%|#         | 100/1000 [1:00:50<07:30,  2.00it/s]\n",
      "nohup.out");
  ASSERT_TRUE(pace);
  EXPECT_THAT(points_of(*pace), ElementsAre(Pair(0, 0), Pair(500, 250), Pair(1000, 500), Pair(1100, 500 + 3650)));
}

// Without "train_runtime" a run has no time yet, and is a run nonetheless.
TEST(RunPace, RecordsWithoutTimesAreCounted) {
  const auto state = read_run_pace(
      "{\"log_history\": [{\"loss\": 2.0, \"step\": 100}, {\"loss\": 1.5, \"step\": 200}]}\n", "trainer_state.json");
  ASSERT_TRUE(state);
  EXPECT_THAT(state->points, SizeIs(0));
  EXPECT_EQ(state->untimed, 2U);
}

TEST(RunPace, CountsOfRecordsMayBeText) {
  const auto pace = read_run_pace(
      "{\"step\": \"1,000\", \"elapsed\": 60}\n{\"step\": \"2k\", \"elapsed\": 120}\n{\"step\": \"2,50\", \"elapsed\": "
      "130}\n",
      "run.jsonl");
  ASSERT_TRUE(pace);
  EXPECT_THAT(points_of(*pace), ElementsAre(Pair(1000, 60), Pair(2000, 120)));
}

// A bar with another label has another length by chance alone; unit_scale prints thousands.
TEST(RunPace, OfProgressBarsWithLabelsAndThousands) {
  const auto pace = read_run_pace(
      "Train: 100%|##########| 1000/1000 [10:00<00:00,  1.67it/s]\n"
      "Generating: 100%|##########| 1000/1000 [00:20<00:00, 50.0it/s]\n"
      "Train:  10%|#         | 100/1000 [01:00<09:00,  1.67it/s]\n",
      "nohup.out");
  ASSERT_TRUE(pace);
  EXPECT_THAT(points_of(*pace), ElementsAre(Pair(0, 0), Pair(1000, 600), Pair(1100, 660)));
  const auto thousands = read_run_pace(
      "  5%|5         | 500/10.0k [04:10<1:19:10, 2.00it/s]\r 10%|#         | 1.00k/10.0k [08:20<1:15:00, 2.00it/s]\n",
      "nohup.out");
  ASSERT_TRUE(thousands);
  EXPECT_THAT(points_of(*thousands), ElementsAre(Pair(500, 250), Pair(1000, 500)));
}

// StudioGAN aligns its steps to the right; exports have a run's name before a metric's, or semicolons.
TEST(RunPace, OfOtherTablesAndLogs) {
  const auto studio =
      read_run_pace("[INFO] 2021-05-18 10:10:00 > Step:    100 Progress: 0.1% Elapsed: 0:10:00\n", "s.log");
  ASSERT_TRUE(studio);
  EXPECT_THAT(points_of(*studio), ElementsAre(Pair(100, 600)));
  const auto exported =
      read_run_pace("\"Relative Time (Process)\",\"brisk-sun-3 - Progress/kimg\"\n0,0\n600,8\n", "wandb.csv");
  ASSERT_TRUE(exported);
  EXPECT_TRUE(exported->counts_images);
  EXPECT_THAT(points_of(*exported), ElementsAre(Pair(0, 0), Pair(8000, 600)));
  const auto semicolons = read_run_pace("iteration;time_s;fid\n0;0;300\n1000;60,5;80\n", "run.csv");
  ASSERT_TRUE(semicolons);
  EXPECT_THAT(points_of(*semicolons), ElementsAre(Pair(0, 0), Pair(1000, 60.5)));
}

// 2026-11-03T08:15:00Z is 1,793,693,700 seconds after 1970 began (date -u +%s).
TEST(RunPace, KnowsTimesAsText) {
  constexpr double kThen = 1793693700;
  for (const char* text : {"{\"timestamp\": \"2026-11-03T08:15:00Z\", \"step\": 100}\n"
                           "{\"timestamp\": \"2026-11-03T08:15:30Z\", \"step\": 200}\n",
                           "{\"ts\": 1793693700000, \"step\": 100}\n{\"ts\": 1793693730000, \"step\": 200}\n",
                           "step,timestamp\n100,1793693700000\n200,1793693730000\n",
                           "date,step\n2026-11-03 08:15:00,100\n2026-11-03 08:15:30,200\n",
                           "2026-11-03 08:15:00,000 - INFO - Iter(train) [100/5000] lr: 1e-4\n"
                           "2026-11-03 08:15:30,000 - INFO - Iter(train) [200/5000] lr: 1e-4\n",
                           "[2026/11/03 08:15:00] 2.5 sec/step 0.5, global_step=100 loss 1\n"
                           "[2026/11/03 08:15:30] 2.5 sec/step 0.5, global_step=200 loss 1\n"}) {
    const auto pace = read_run_pace(text, "run.log");
    ASSERT_TRUE(pace) << text;
    ASSERT_EQ(pace->points.size(), 2U) << text;
    EXPECT_EQ(pace->points[1].count, 200) << text;
    EXPECT_EQ(pace->points[1].seconds - pace->points[0].seconds, 30) << text;
    EXPECT_EQ(pace->begin_unix_s, kThen) << text;
  }
}

// Syslog leaves out the year: when the run began is not known, how long it takes is.
TEST(RunPace, KnowsTimesWithoutAYear) {
  const auto pace = read_run_pace(
      "Dec 31 23:59:50 node7 train[12]: step 100/5000\nnode7 restarted\nDec 31 23:59:55 node7 train[12]: step 200 kimg "
      "12\n"
      "Dec 31 23:59:59 node7 train[12]: step 100.5 of an epoch\n",
      "syslog");
  ASSERT_TRUE(pace);
  EXPECT_FALSE(pace->begin_unix_s);
  EXPECT_EQ(pace->points.back().seconds, 5);
  EXPECT_EQ(pace->points.back().count, 200);
}

// What follows the time of a line is no part of it, whatever its number.
TEST(RunPace, NumbersBehindATimeAreNotItsDate) {
  for (const char* format : {"Nov 03 08:{:02}:00 {} step {}000\n", "Nov 03 08:{:02}:00 106{} images; step {}000\n",
                             "Tue Nov 03 08:{:02}:00 200{} losses, step {}000\n"}) {
    std::string text;
    for (int i = 1; i <= 5; ++i) text += fmt::format(fmt::runtime(format), 10 * i, i, i);
    const auto pace = read_run_pace(text, "run.log");
    ASSERT_TRUE(pace) << text;
    EXPECT_THAT(points_of(*pace),
                ElementsAre(Pair(1000, 0), Pair(2000, 600), Pair(3000, 1200), Pair(4000, 1800), Pair(5000, 2400)))
        << text;
  }
}

TEST(RunPace, KnowsThousands) {
  for (const auto& [count, expected] : std::vector<std::pair<const char*, double>>{{"1,000", 1000},
                                                                                   {"1,234,567/2,000,000", 1234567},
                                                                                   {"1_000", 1000},
                                                                                   {"1k", 1000},
                                                                                   {"1.5K", 1500},
                                                                                   {"2M,", 2e6},
                                                                                   {"1e+05", 1e5},
                                                                                   {"1000, loss 5", 1000},
                                                                                   {"100,5", 100},
                                                                                   {"1234,567", 1234},
                                                                                   {"70.", 70}}) {
    const auto pace = read_run_pace(fmt::format("2026-11-03 08:15:00 - step {}\n", count), "run.log");
    ASSERT_TRUE(pace) << count;
    EXPECT_EQ(pace->points.front().count, expected) << count;
  }
  const auto table = read_run_pace("step,elapsed\n\"1,000\",60\n2k,120\n", "run.csv");
  ASSERT_TRUE(table);
  EXPECT_THAT(points_of(*table), ElementsAre(Pair(1000, 60), Pair(2000, 120)));
  EXPECT_FALSE(read_run_pace("2026-11-03 08:15:00 - step 1.5\n", "run.log"));
}

// A clock that was set back an hour, and a New Year where no year is said: what was trained before still counts.
TEST(RunPace, AClockThatWasSetBackGoesOn) {
  for (const char* text : {"2026-10-25 02:40:00 step 100\n2026-10-25 02:50:00 step 200\n2026-10-25 02:05:00 step 300\n"
                           "2026-10-25 02:15:00 step 400\n",
                           "{\"ts\": 1793693700, \"step\": 100}\n{\"ts\": 1793694300, \"step\": 200}\n"
                           "{\"ts\": 1793691000, \"step\": 300}\n{\"ts\": 1793691600, \"step\": 400}\n"}) {
    const auto pace = read_run_pace(text, "run.log");
    ASSERT_TRUE(pace);
    EXPECT_THAT(points_of(*pace), ElementsAre(Pair(100, 0), Pair(200, 600), Pair(300, 600), Pair(400, 1200)));
    EXPECT_EQ(std::fmod(*pace->begin_unix_s + 1200, 60), 0) << "the clock as it goes now";
  }
  for (const char* text :
       {"Dec 31 23:40:00 step 100\nDec 31 23:50:00 step 200\nJan 01 00:10:00 step 300\n",
        "{\"time\": \"Dec 31 23:40:00\", \"step\": 100}\n{\"time\": \"Dec 31 23:50:00\", \"step\": 200}\n"
        "{\"time\": \"Jan 01 00:10:00\", \"step\": 300}\n",
        "step,date\n100,Dec 31 23:40:00\n200,Dec 31 23:50:00\n300,Jan 01 00:10:00\n"}) {
    const auto pace = read_run_pace(text, "run.log");
    ASSERT_TRUE(pace);
    EXPECT_THAT(points_of(*pace), ElementsAre(Pair(100, 0), Pair(200, 600), Pair(300, 1800))) << text;
    EXPECT_FALSE(pace->begin_unix_s) << text;
  }
}

TEST(RunPace, TimesThatCountFromTheBeginningAreNotOf1970) {
  for (const char* text :
       {"{\"ts\": 60, \"step\": 1000}\n{\"ts\": 120, \"step\": 2000}\n", "step,timestamp\n1000,60\n2000,120\n"}) {
    const auto pace = read_run_pace(text, "run.jsonl");
    ASSERT_TRUE(pace);
    EXPECT_THAT(points_of(*pace), ElementsAre(Pair(1000, 0), Pair(2000, 60)));
    EXPECT_FALSE(pace->begin_unix_s) << text;
  }
}

}  // namespace
}  // namespace ganymede::traces
