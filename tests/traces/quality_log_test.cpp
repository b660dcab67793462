#include "traces/quality_log.hpp"

#include <gmock/gmock.h>

#include <cstdint>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::traces {
namespace {

using testing::HasSubstr;

// Files of TensorBoard 2.21.0 itself, in base64. The first is of its EventFileWriter with the scalars Metrics/fid (300,
// 80.25, 40.5 at steps 0, 1000, 2000) and Loss/D; the second of tensorboard.summary.Writer, which stores FID as
// tensors.
constexpr const char* kPlainEvents =
    "SAAAAAAAAAD+kkidCa0cUuk9wdpBGg1icmFpbi5FdmVudDoyUi4KLHRlbnNvcmJvYXJkLnN1bW1hcnkud3JpdGVyLmV2ZW50X2ZpbGVfd3JpdG"
    "VygL8j5B8AAAAAAAAAUUtEGAkAAABA/FTZQSoUChIKC01ldHJpY3MvZmlkFQAAlkMCh1kaGgAAAAAAAAASm9gtCQAAAED8VNlBKg8KDQoGTG9z"
    "cy9EFQAAwD/vDIzQIgAAAAAAAAB4ET39CQAAADr9VNlBEOgHKhQKEgoLTWV0cmljcy9maWQVAICgQny5OOMdAAAAAAAAAGAv3yMJAAAAOv1U2U"
    "EQ6AcqDwoNCgZMb3NzL0QVAADAPzqIb3YiAAAAAAAAAHgRPf0JAAAANP5U2UEQ0A8qFAoSCgtNZXRyaWNzL2ZpZBUAACJCLxiMZB0AAAAAAAAA"
    "YC/fIwkAAAA0/lTZQRDQDyoPCg0KBkxvc3MvRBUAAMA/zLk5JQ==";
constexpr const char* kTensorEvents =
    "SAAAAAAAAAD+kkidCSBKUuk9wdpBGg1icmFpbi5FdmVudDoyUi4KLHRlbnNvcmJvYXJkLnN1bW1hcnkud3JpdGVyLmV2ZW50X2ZpbGVfd3JpdG"
    "VyaEFS1DAAAAAAAAAAlfXQXwlDT1LpPcHaQRDoByoiCiAKA0ZJREIKCAESACoEAICgQkoNCgkKB3NjYWxhcnMgAR8eAIwwAAAAAAAAAJX10F8J"
    "+1JS6T3B2kEQ0A8qIgogCgNGSURCCggBEgAqBAAAIkJKDQoJCgdzY2FsYXJzIAFZjjOk";

std::string from_base64(std::string_view text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const auto value = digits.find(c);
    if (value == std::string::npos) break;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>((bits >> count) & 0xff);
  }
  return out;
}

class QualityLogs : public testing::Test {
 protected:
  std::vector<QualityLog> read(const std::string& text, const std::string& name = "points.csv") {
    write_file(folder_.path() / name, text);
    return read_quality_logs(folder_.path() / name, options_);
  }
  std::string error(const std::string& text) {
    return message_of<ConfigError>([&] { read(text); });
  }
  TemporaryFolder folder_;
  QualityLogOptions options_;
};

TEST_F(QualityLogs, CountsMayHaveSeparatorsAndUnits) {
  const auto logs = read("images,fid\n\"1,000\",90\n2k,80\n1.5M,70\n");
  ASSERT_EQ(logs.at(0).points.size(), 3U);
  EXPECT_EQ(logs[0].points[0].images, 1000);
  EXPECT_EQ(logs[0].points[1].images, 2000);
  EXPECT_EQ(logs[0].points[2].images, 1.5e6);
  EXPECT_THAT(error("images,fid\n\"1,00\",90\n"), HasSubstr("line 2: images: found  1,00, expected a number"));
  EXPECT_THAT(error("images,fid\n1000 images,90\n"), HasSubstr("found  1000 images, expected a number"));
  EXPECT_THAT(error("images,fid\n1000,1k\n"), HasSubstr("fid: found  1k, expected a number"));
}

TEST_F(QualityLogs, ACsvHoldsSeveralRunsWithTheirFacts) {
  const auto logs = read(
      "run,d_real_kimg,fid,dataset,fid_reference,fid_images,batch,accumulation\n"
      "a,256,80,CIFAR10,test,10000,64,2\nb,100,50,AFHQ,train,14630,8,1\na,512,40,CIFAR10,test,10000,64,2\n");
  ASSERT_EQ(logs.size(), 2U);
  EXPECT_EQ(logs[0].facts.at("reference"), "test 10000");
  EXPECT_EQ(logs[0].batch, 128);
  ASSERT_EQ(logs[0].points.size(), 2U);
  EXPECT_EQ(logs[0].points[1].images, 512e3);
  EXPECT_EQ(logs[1].facts.at("dataset"), "AFHQ");
}

TEST_F(QualityLogs, FactsOfRunsMayStandInAFileOfTheirOwn) {
  options_.runs = folder_.path() / "runs.csv";
  write_file(options_.runs, "run,backbone,batch,fid_reference\nb,dcgan,32,test\na,resnet,64,valid\n");
  const auto logs = read("run,images,fid\na,1000,80\n");
  EXPECT_EQ(logs.at(0).facts.at("backbone"), "resnet");
  EXPECT_EQ(logs[0].facts.at("reference"), "valid");
  EXPECT_EQ(logs[0].batch, 64);
}

TEST_F(QualityLogs, BadPointsAreRefusedWithTheirLine) {
  EXPECT_THAT(error("images,fid\n1000,80\n2000,0\n"), AllOf(HasSubstr("line 3: fid"), HasSubstr("above zero")));
  EXPECT_THAT(error("images,fid\n1000,-2\n"), HasSubstr("line 2: fid"));
  EXPECT_THAT(error("images,fid\n1000,nan\n"), HasSubstr("line 2: fid"));
  EXPECT_THAT(error("images,fid\n-1,80\n"), HasSubstr("line 2: images"));
  EXPECT_THAT(error("images,fid\n1000,\n"), HasSubstr("no point"));
  EXPECT_THAT(error("run,images,fid,fid_reference\na,1000,80,test\na,2000,70,train\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("cannot be compared")));
  EXPECT_THAT(error("images,fid,reference\n1000,80,test 10000\n2000,70,train 50000\n"),
              AllOf(HasSubstr("line 3: reference"), HasSubstr("cannot be compared")));
  EXPECT_THAT(error("images,fid\n1000,1e16\n"), HasSubstr("up to 1e15"));
  EXPECT_THAT(error("fid\n80\n"), HasSubstr("expected a column \"images\""));
  EXPECT_THAT(error("a poem\nof two lines\n"), HasSubstr("line 1"));
}

TEST_F(QualityLogs, StepsAreNotTakenForImages) {
  EXPECT_THAT(error("step,fid\n1000,80\n"), HasSubstr("--images-per-step"));
  options_.images_per_step = 64;
  EXPECT_EQ(read("step,fid\n1000,80\n")[0].points[0].images, 64000);
  EXPECT_THAT(error("step,images,fid\n1000,1000,80\n"), HasSubstr("counts steps"));
  options_.images_per_step = 0;
  EXPECT_THAT(read("step,images,fid\n1000,1000,80\n")[0].images_are_steps, HasSubstr("line 2: images"));
  EXPECT_EQ(read("step,images,fid\n1000,64000,80\n")[0].images_are_steps, "");
}

// StyleGAN evaluates its networks before it trains them, and so do others that evaluate at their first tick.
TEST_F(QualityLogs, APointBeforeTheFirstStepIsLeftOut) {
  const auto of = [&](const std::string& text) {
    const QualityLog log = read(text)[0];
    return log.points.size() == 1 ? log.points[0].images : 0;
  };
  EXPECT_EQ(of("images,fid\n0,400\n2000,80\n"), 2000);
  EXPECT_EQ(of("kimg,fid\n0.0,400\n2,80\n"), 2000);
  options_.images_per_step = 20;
  EXPECT_EQ(of("step,fid\n0,400\n100,80\n"), 2000);
  EXPECT_EQ(of("step,images,fid\n0,0,400\n100,2000,80\n"), 2000);  // 0 images in 0 steps are no sign of steps
  EXPECT_EQ(of("FID score (Step: 0, Using test moments): 400\nFID score (Step: 100, Using test moments): 80\n"), 2000);
  EXPECT_THAT(error("images,fid\n0,400\n"), HasSubstr("no point"));
  EXPECT_THAT(error("FID score (Step: 0, Using test moments): 400\n"), HasSubstr("after the first step"));
}

TEST_F(QualityLogs, ASetBackLosesWhatCameAfterAndARepetitionReplaces) {
  const QualityLog log = read("images,fid\n1000,80\n2000,70\n3000,60\n3000,61\n2500,66\n4000,50\n")[0];
  ASSERT_EQ(log.points.size(), 4U);
  EXPECT_EQ(log.points[2].images, 2500);
  EXPECT_THAT(log.notes, testing::ElementsAre(HasSubstr("set back")));
  const QualityLog again = read("images,fid\n1000,80\n2000,70\n1000,79\n")[0];
  EXPECT_EQ(again.points[0].fid, 79);
  EXPECT_THAT(again.notes, testing::ElementsAre(HasSubstr("evaluated again after 1000 images")));
}

// A line of each is 80 after 2,000 images: of StyleGAN in TensorFlow, BigGAN-PyTorch, TensorBoard's export, a
// spreadsheet.
TEST_F(QualityLogs, ReadsOtherProgramsWaysToSayIt) {
  options_.images_per_step = 20;
  for (const auto& [text, name] : std::vector<std::pair<std::string, std::string>>{
           {"network-snapshot-000000   time 12m 30s   fid50k 400.25\nnetwork-snapshot-000002   time 9m 10s   fid50k "
            "80\n",
            "metric-fid50k.txt"},
           {"tick 1     kimg 2.0      lod 0.00  minibatch 32   time 5m 10s      sec/tick 290.0   sec/kimg 36.25   "
            "maintenance 10.0\nnetwork-snapshot-000002   time 9m 10s   fid50k 80\n",
            "log.txt"},
           {R"({"itr": 100, "IS_mean": 5.5, "IS_std": 0.1, "FID": 80, "_stamp": 1619000000.5})", "x_log.jsonl"},
           {"Wall time,Step,Value\n1619000000.5,100,80\n", "run-1-tag-metrics_FID.csv"},
           {"step;fid\n100;80,0\n", "x.csv"},
           {"step\tFID\n100\t80.0\n", "x.tsv"},
           {"2026-11-03 08:00:00 step 100 loss 1 FID: 8.0e+01 best_fid: 70\n", "x.log"}}) {
    const QualityLog log = read(text, name)[0];
    ASSERT_EQ(log.points.size(), 1U) << text;
    EXPECT_EQ(log.points[0].images, 2000) << text;
    EXPECT_EQ(log.points[0].fid, 80) << text;
  }
}

TEST_F(QualityLogs, StyleGansMetricsCountImagesBySnapshot) {
  const auto line = [](const char* snapshot, const char* metric, double fid) {
    return std::string(R"({"results": {")") + metric + "\": " + std::to_string(fid) + R"(}, "metric": ")" + metric +
           R"(", "total_time": 120.1, "total_time_str": "2m 00s", "num_gpus": 8, "snapshot_pkl": ")" + snapshot +
           R"(", "timestamp": 1612345678.5})" + "\n";
  };
  const std::string first = line("network-snapshot-000000.pkl", "fid50k_full", 400) +
                            line("network-snapshot-000200.pkl", "fid50k_full", 80) +
                            line("network-snapshot-000400.pkl", "fid50k_full", 30);
  const QualityLog log = read(first, "metric-fid50k_full.jsonl")[0];
  ASSERT_EQ(log.points.size(), 2U);  // the first is of a network that was not trained
  EXPECT_EQ(log.points[0].images, 200e3);
  EXPECT_EQ(log.points[1].fid, 30);
  EXPECT_EQ(log.facts.at("reference"), "fid50k_full");
  EXPECT_THAT(error(first + line("network-snapshot-000600.pkl", "fid50k", 20)), HasSubstr("line 4"));
  EXPECT_THAT(error(line("network-snapshot-000600.pkl", "kid50k_full", 20)), HasSubstr("line 1"));
}

TEST_F(QualityLogs, StudioGansLogCountsSteps) {
  const std::string text =
      "[INFO] 2021-10-16 13:21:43 > Start training!\n"
      "[INFO] 2021-10-16 14:00:00 > FID score (Step: 2000, Using test moments): 51.25\n"
      "[INFO] 2021-10-16 14:40:00 > FID score (Step: 4000, Using test moments): 48.5\n";
  EXPECT_THAT(error(text), AllOf(HasSubstr("line 2"), HasSubstr("--images-per-step")));
  options_.images_per_step = 320;
  const QualityLog log = read(text, "train.log")[0];
  ASSERT_EQ(log.points.size(), 2U);
  EXPECT_EQ(log.points[1].images, 4000 * 320);
  EXPECT_EQ(log.points[1].fid, 48.5);
  EXPECT_EQ(log.facts.at("reference"), "test");
}

TEST_F(QualityLogs, EventFilesOfTensorBoardAreRead) {
  options_.images_per_step = 100;
  for (const char* text : {kPlainEvents, kTensorEvents}) {
    const QualityLog log = read(from_base64(text), "events.out.tfevents.1")[0];
    ASSERT_EQ(log.points.size(), 2U);
    EXPECT_EQ(log.points[0].images, 100e3);
    EXPECT_EQ(log.points[0].fid, 80.25);
    EXPECT_EQ(log.points[1].fid, 40.5);
  }
}

TEST_F(QualityLogs, ADamagedEventFileIsRefusedAndACutOneIsReadSoFar) {
  options_.images_per_step = 100;
  std::string bytes = from_base64(kPlainEvents);
  EXPECT_EQ(read(bytes.substr(0, bytes.size() - 70))[0].points.size(), 1U);
  bytes[120] ^= 1;
  EXPECT_THAT(error(bytes), HasSubstr("checksum"));
  bytes = from_base64(kPlainEvents);
  options_.tag = "Loss/G";
  EXPECT_THAT(error(bytes), AllOf(HasSubstr("Metrics/fid"), HasSubstr("did you mean \"Loss/D\"")));
  options_.tag = "Loss/D";
  EXPECT_EQ(read(bytes)[0].points[0].fid, 1.5);
  options_ = {};
  EXPECT_THAT(error(bytes), HasSubstr("--images-per-step"));
}

// MMEngine's text log, whose evaluations do not say at which step they are.
TEST(LoggedQuality, OfLinesOfALogger) {
  const TemporaryFolder folder;
  QualityLogOptions options;
  options.images_per_step = 64;
  const auto logs = read_quality_logs(
      folder.add("run.log",
                 "2026/11/03 08:00:00 - mmengine - INFO - Iter(train) [ 1000/9000] lr: 1e-3\n"
                 "2026/11/03 08:01:00 - mmengine - INFO - Iter(val) [100/100]  FID-Full-50k/fid: 41.5  time: 0.2\n"),
      options);
  ASSERT_THAT(logs, testing::SizeIs(1));
  EXPECT_EQ(logs[0].points.at(0).images, 64000);
  EXPECT_EQ(logs[0].facts.at("reference"), "fid-full-50k/fid");
}

}  // namespace
}  // namespace ganymede::traces
