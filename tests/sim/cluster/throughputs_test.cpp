// Measured speeds as they are, and how well those that are left out are estimated from the others.

#include "sim/cluster/throughputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "support/when.hpp"

namespace ganymede::sim {
namespace {

std::string table(const std::string& name) {
  std::ifstream file(GANYMEDE_SOURCE_DIR "/sim/cluster/throughputs/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Lines of a table, the first being the names of columns.
std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> cells;
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  return cells;
}

std::string without(const std::vector<std::string>& lines, std::size_t left_out) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (i != left_out) text += lines[i] + "\n";
  return text;
}

/// Relative errors of rows that were left out, one at a time.
struct Errors {
  std::vector<double> all;
  void add(double estimate, double measured) { all.push_back(std::abs(estimate / measured - 1)); }
  double within(double bound) const {
    return static_cast<double>(std::count_if(all.begin(), all.end(), [&](double error) { return error < bound; })) /
           static_cast<double>(all.size());
  }
  double median() {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }
};

TEST(Throughputs, EstimateRatesThatAreLeftOutWithin15Percent) {
  NOT_SANITIZED("looks at numbers of many fits");
  const auto rates = lines_of(table("rates.csv"));
  Errors errors;
  for (std::size_t i = 1; i < rates.size(); i += 5) {
    const auto cells = cells_of(rates[i]);  // model, batch, GPU, machines, GPUs, rate
    const Throughputs others(without(rates, i), "gpu,model,batch,beside,batch_beside,speed,speed_beside\n");
    const auto rate = others.alone(cells[2], {cells[0], cells[1]}, std::stoi(cells[4]), cells[3] == "several");
    if (rate) errors.add(*rate, std::stod(cells[5]));
  }
  EXPECT_GT(errors.all.size(), 70U);
  EXPECT_GT(errors.within(0.15), 0.85);
  EXPECT_LT(errors.median(), 0.05);
}

TEST(Throughputs, EstimateSharedGpusThatAreLeftOutWithin15Percent) {
  const std::string rates = table("rates.csv");
  const auto pairs = lines_of(table("shared_gpu.csv"));
  Errors errors;
  for (std::size_t i = 1; i < pairs.size(); i += 19) {
    const auto cells = cells_of(pairs[i]);  // GPU, model, batch, beside, its batch, speeds
    const Throughputs others(rates, without(pairs, i));
    const auto both = others.together(cells[0], {cells[1], cells[2]}, {cells[3], cells[4]});
    if (!both) continue;  // without this row nothing tells that the two fit
    errors.add(both->first, std::stod(cells[5]));
    errors.add(both->second, std::stod(cells[6]));
  }
  EXPECT_GT(errors.all.size(), 50U);
  EXPECT_GT(errors.within(0.15), 0.85);
  EXPECT_LT(errors.median(), 0.05);
}

TEST(Throughputs, EstimateBatchesBetweenAndRefuseThoseThatDidNotRun) {
  const Throughputs throughputs;
  EXPECT_TRUE(throughputs.has({"ResNet-50", "48"}));
  EXPECT_FALSE(throughputs.is_measured({"ResNet-50", "48"}));
  EXPECT_FALSE(throughputs.has({"ResNet-50", "256"})) << "larger than any";
  EXPECT_FALSE(throughputs.has({"A3C", "3"}));
  const double small = *throughputs.alone("V100", {"ResNet-50", "32"}, 1, false),
               between = *throughputs.alone("V100", {"ResNet-50", "48"}, 1, false),
               large = *throughputs.alone("V100", {"ResNet-50", "64"}, 1, false);
  EXPECT_LT(between, small);
  EXPECT_GT(between, large);
  EXPECT_FALSE(throughputs.alone("A100", {"ResNet-50", "48"}, 1, false));
  EXPECT_DOUBLE_EQ(*throughputs.alone("V100", {"ResNet-50", "48"}, 32, true),
                   4 * *throughputs.alone("V100", {"ResNet-50", "48"}, 8, true));
  const auto both = throughputs.together("V100", {"ResNet-50", "48"}, {"LM", "10"});
  ASSERT_TRUE(both);
  EXPECT_GT(both->first, 0.1);
  EXPECT_LE(both->first, 1);
}

// Two copies of "known" go at 0.8 of their speed: 1 / (1 + u u) = 0.8, so that each keeps the GPU busy for u = 1/2. Who
// is always busy goes with it at 1 / (1 + 1/2) each in the mean; beside "third" the known one gets 2 of 5 parts.
TEST(Throughputs, EstimateAModelThatWasNeverMeasuredBesideAnother) {
  const std::string rates =
      "model,batch,gpu,machines,gpus,steps_per_s\nnew,,P100,one,1,1\nknown,8,P100,one,1,1\nknown,16,P100,one,1,1\n"
      "third,,P100,one,1,1\nalso-new,,P100,one,1,1\n";
  const std::string shared =
      "gpu,model,batch,beside,batch_beside,speed,speed_beside\nP100,known,8,known,8,0.8,0.8\n"
      "P100,known,8,third,,0.6,0.9\nP100,known,16,third,,0.5,0.5\n";
  const Throughputs throughputs(rates, shared);
  const auto both = throughputs.together("P100", {"new", ""}, {"known", "8"});
  ASSERT_TRUE(both);
  EXPECT_TRUE(both->estimated);
  EXPECT_NEAR(both->first, 4.0 / 3 * 3 / 5, 1e-12);
  EXPECT_NEAR(both->second, 4.0 / 3 * 2 / 5, 1e-12);
  const auto turned = throughputs.together("P100", {"known", "8"}, {"new", ""});
  ASSERT_TRUE(turned);
  EXPECT_EQ(turned->first, both->second);
  EXPECT_EQ(turned->second, both->first);
  EXPECT_FALSE(throughputs.together("P100", {"known", "8"}, {"known", "8"})->estimated);
  EXPECT_FALSE(throughputs.together("P100", {"new", ""}, {"known", "16"})) << "no two copies of it ran there";
  EXPECT_FALSE(throughputs.together("P100", {"new", ""}, {"also-new", ""})) << "nobody knows whether they fit";
}

// CycleGAN on a P100, which is in no table of the program: what Gavel's authors measured in steps a second (the file of
// throughputs/README.md, "p100"), beside the estimate. Alone it made 2.4027.
TEST(Throughputs, TheEstimateAgreesWithPairsThatItHasNotSeen) {
  struct Pair {
    MeasuredModel beside;
    double own, other;
  };
  const Pair pairs[] = {{{"A3C", ""}, 1.2, 2.9861},
                        {{"LM", "10"}, 1.6137, 27.3786},
                        {{"LM", "80"}, 1.3925, 9.6616},
                        {{"ResNet-18", "16"}, 1.3115, 17.759},
                        {{"ResNet-18", "256"}, 0.9933, 4.0445},
                        {{"ResNet-50", "16"}, 0.9896, 5.2766},
                        {{"ResNet-50", "64"}, 0.9754, 1.5546},
                        {{"Transformer", "16"}, 1.3221, 6.3935},
                        {{"Transformer", "64"}, 1.1781, 2.6134}};
  const Throughputs throughputs;
  Errors sums, speeds;
  for (const Pair& pair : pairs) {
    const auto both = throughputs.together("P100", {"CycleGAN", ""}, pair.beside);
    ASSERT_TRUE(both) << pair.beside.first;
    const double own = pair.own / 2.4027, other = pair.other / *throughputs.alone("P100", pair.beside, 1, false);
    sums.add(both->first + both->second, own + other);
    speeds.add(both->first, own);
    speeds.add(both->second, other);
  }
  EXPECT_EQ(sums.within(0.1), 1);
  EXPECT_LT(speeds.median(), 0.2);
  EXPECT_GT(speeds.within(0.35), 0.9);
  EXPECT_FALSE(throughputs.together("P100", {"CycleGAN", ""}, {"ResNet-50", "128"})) << "which did not run";
}

}  // namespace
}  // namespace ganymede::sim
