// export simgrid and import simgrid as a user runs them; an MPI program on an exported platform takes the time that
// allreduce says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Nodes of one and of four GPUs on links of 12.5 GB/s; adding takes no time.
constexpr const char* kLabWith = R"({ "schema": "ganymede.platform/1", "name": "lab",
  "gpus": { "X": { "memory": "16GiB", "fp32": "10Tflop/s", "memory_bandwidth": "100000000GB/s",
                   "power": { "idle": "50W", "peak": "300W" } } },
  "instances": { "one": { "gpu": "X", "gpus": 1, "nic": { "bandwidth": "12.5GB/s", "latency": "5us" } },
                 "four": { "gpu": "X", "gpus": 4, "nic": { "bandwidth": "12.5GB/s", "latency": "5us", "count": 2 },
                           "power": { "idle": "40W", "peak": "80W" },
                           "gpu_links": { "kind": "nvlink", "bandwidth": "100GB/s", "latency": "1us" } } })";

std::string lab(const Scratch& scratch, const std::string& fabric = "") {
  return scratch.write("lab.json", kLabWith + fabric + "}");
}

Outcome expect_done(const std::string& arguments) {
  Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
  return outcome;
}

double time_of(const std::string& arguments) {
  const Json rows = Json::parse_or_null(expect_done("allreduce " + arguments + " --format json").out);
  return rows.is_array() ? rows[0]["time_s"].get<double>() : -1;
}

/// A SimGrid platform around these elements.
std::string platform_around(const std::string& elements) {
  return "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\">\n" +
         elements + "\n</platform>\n";
}

struct Machine {
  const char *catalog, *instance;
  int nodes;
  const char* fabric;
};

class RoundTrip : public testing::TestWithParam<Machine> {};

// All that the model knows of these machines and all-reduces can be said in XML, or stands in its properties.
TEST_P(RoundTrip, KeepsTheTimesOfAllReduces) {
  NOT_SANITIZED("starts a program for each scheme and size, and one starts slowly there");
  const auto& [catalog, instance, nodes, fabric] = GetParam();
  const Scratch scratch;
  const std::string from = *catalog != 0 ? catalog : lab(scratch, fabric);
  const std::string xml = (scratch / "platform.xml").string(), back = (scratch / "back.json").string();
  const std::string where = std::string(" --instance ") + instance + " --nodes " + std::to_string(nodes);
  expect_done("export simgrid --catalog " + from + where + " -o " + xml);
  expect_done("import simgrid " + xml + " -o " + back);
  for (const char* scheme : {"ring", "halving-doubling", "tree", "two-level"})
    for (const char* fidelity : {"folded", "message"}) {
      const std::string what = where + " --bytes 3MiB --scheme " + scheme + " --fidelity " + fidelity + " --catalog ";
      EXPECT_NEAR(time_of(what + back) / time_of(what + from), 1, 1e-9) << scheme << " " << fidelity;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Machines, RoundTrip,
    testing::Values(Machine{"aws", "p4d.24xlarge", 2, ""}, Machine{"aws", "g5.12xlarge", 2, ""},
                    Machine{"", "one", 6, R"(, "fabric": { "kind": "switch", "latency": "2us" })"},
                    Machine{"", "four", 4, R"(, "fabric": { "kind": "switch", "latency": "2us", "oversubscription": 3,
                      "zones": { "nodes": 2, "bandwidth": "9GB/s", "latency": "300us", "per_flow": "2GB/s" } })"},
                    Machine{"", "one", 6, R"(, "fabric": { "kind": "torus", "dimensions": [3, 2], "latency": "1us",
                      "bandwidth": "25GB/s" })"}));

TEST(ExportSimgrid, WritesHostsLinksPowerAndWhatXmlCannotSay) {
  const Scratch scratch;
  const std::string arguments = "export simgrid --catalog " + lab(scratch) + " --instance four --nodes 11";
  const Outcome outcome = expect_done(arguments);
  // A quarter of the host's power belongs to each GPU. Names in alphabetical order are ranks in theirs.
  EXPECT_THAT(
      outcome.out,
      HasSubstr(R"(<host id="node-00.gpu-0" speed="10000000000000f"><prop id="wattage_per_state" value="60:320"/>)"));
  EXPECT_THAT(
      outcome.out,
      HasSubstr(R"(<link id="nic.10.1" bandwidth="12500000000Bps" latency="0s" sharing_policy="SPLITDUPLEX"/>)"));
  EXPECT_THAT(
      outcome.out,
      HasSubstr(R"(<route src="node-10.gpu-3" dst="node-10.gpu-3" symmetrical="NO"><link_ctn id="loopback"/>)"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("<config>")));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("warning: latencies of routes differ, from 1 us to 10 us"),
                                 HasSubstr("3 bytes of memory traffic"), Not(HasSubstr("wattage"))));
  EXPECT_EQ(expect_done(arguments).out, outcome.out);
  const Outcome aws =
      expect_done("export simgrid --catalog aws --instance p3.2xlarge --region us-east-1 --unit-factors");
  EXPECT_THAT(aws.out, AllOf(HasSubstr(R"(<prop id="network/bandwidth-factor" value="1"/>)"),
                             HasSubstr(R"(<prop id="region" value="us-east-1"/>)"), HasSubstr("node_per_hour")));
}

TEST(ExportSimgrid, RefusesWhatNoFileCanHold) {
  for (const auto& [arguments, expected] : std::vector<std::pair<std::string, std::string>>{
           {"--instance p4d.24xlarge --nodes 65", "--nodes 65: found 520 GPUs in all, expected at most 512"},
           {"--instance p4d.24xlarge --gpus-per-node 9", "--gpus-per-node 9: p4d.24xlarge has 8"},
           {"--instance p4d.24xlarg", "did you mean \"p4d.24xlarge\"?"},
           {"--instance p4d.24xlarge --region mars", "mars"}}) {
    const Outcome outcome = run_program("export simgrid --catalog aws " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(expected));
  }
}

// A flat cluster is a switch, which a narrow backbone makes hold all messages up together.
TEST(ImportSimgrid, ReadsClusters) {
  const Scratch scratch;
  const auto imported = [&](const std::string& backbone) {
    const std::string xml = scratch.write(
        "c.xml",
        platform_around("<cluster id='c' prefix='n' suffix='' radical='0-3,8' speed='5Gf' bw='125MBps' lat='50us' " +
                        backbone + "/>"));
    const std::string out = (scratch / "c.json").string();
    expect_done("import simgrid " + xml + " --gpu V100 -o " + out);
    return out;
  };
  const std::string ring = " --instance host --nodes 5 --scheme ring --bytes 5MB --catalog ";
  const double reduction = 4 * 3 * 1e6 / 900e9, launch = 3.8e-6;
  const std::string wide = imported("bb_bw='625MBps' bb_lat='100us'");
  EXPECT_EQ(Json::parse(content_of(wide))["fabric"].value("bandwidth", ""), "");
  EXPECT_NEAR(time_of(ring + wide), 8 * (1e6 / 125e6 + 200e-6) + reduction, 2 * launch);
  const std::string narrow = imported("bb_bw='250MBps' bb_lat='100us' bb_sharing_policy='SHARED'");
  EXPECT_EQ(Json::parse(content_of(narrow))["fabric"].value("bandwidth", ""), "250000000B/s");
  EXPECT_NEAR(time_of(ring + narrow), 8 * (5e6 / 250e6 + 200e-6) + reduction, 2 * launch);
}

TEST(ImportSimgrid, ReadsZonesAndTakesOne) {
  const Scratch scratch;
  const std::string xml =
      scratch.write("z.xml", platform_around(R"(<config><prop id="network/model" value="CM02"/></config>
    <zone id="w" routing="Full">
      <cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" bw="125MBps" lat="50us" router_id="rc"/>
      <cluster id="d" prefix="m" suffix="" radical="0-1" speed="2Gf" bw="125MBps" lat="50us" router_id="rd"/>
      <link id="wan" bandwidth="10MBps" latency="10ms"/>
      <zoneRoute src="c" dst="d" gw_src="rc" gw_dst="rd"><link_ctn id="wan"/></zoneRoute>
    </zone>)"));
  const Outcome unlike = expect_done("import simgrid " + xml + " --gpu V100");
  EXPECT_THAT(unlike.err, HasSubstr("2 of 4 hosts were taken, which compute 2 GFLOP/s"));
  EXPECT_EQ(expect_done("import simgrid " + xml + " --hosts 'm*' --gpu V100").out, unlike.out);
  const Outcome one = expect_done("import simgrid " + xml + " --zone d --gpu V100");
  EXPECT_THAT(one.err, HasSubstr("<config> in line 4 was left out"));
  const Json platform = Json::parse(one.out);
  EXPECT_EQ(platform["instances"]["host"]["available"], 2);
  EXPECT_EQ(platform["gpus"]["V100"]["fp32"], "2000000000flop/s");
  const Outcome none = run_program("import simgrid " + xml + " --zone e --gpu V100");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("has no host in a zone or cluster \"e\""));
}

// A platform that SimGrid 3.32 loads is read: as many hosts as one platform can hold, with a note of the rest.
TEST(ImportSimgrid, ReadsWhatSimGridLoads) {
  const Scratch scratch;
  const auto hosts = [](const std::string& names, const std::string& attributes = "speed='1Gf'") {
    std::string out;
    for (const char name : names) out += std::string("<host id='") + name + "' " + attributes + "/>";
    return out + "<link id='l' bandwidth='1MBps' latency='1us'/>";
  };
  const auto routes = [](const std::vector<std::string>& pairs) {
    std::string out;
    for (const std::string& pair : pairs)
      out += std::string("<route src='") + pair[0] + "' dst='" + pair[1] + "'><link_ctn id='l'/></route>";
    return out;
  };
  const auto zone = [](const std::string& routing, const std::string& inside) {
    return "<zone id='z' routing='" + routing + "'>" + inside + "</zone>";
  };
  const auto cluster = [](const std::string& id, const std::string& attributes) {
    return "<cluster id='" + id + "' prefix='" + id + "' suffix='' speed='1Gf' bw='1MBps' lat='1us' " + attributes +
           "/>";
  };
  struct Case {
    std::string elements;
    int hosts;
    bool network;
    const char* note;
  };
  for (const Case& tried : std::vector<Case>{
           {zone("Full", hosts("abcde") + routes({"ab", "bc", "ac", "de"})), 3, true,
            "3 of 5 hosts were taken, which routes"},
           {zone("Full", hosts("ab")), 2, false, "no route joins the hosts"},
           {zone("None", hosts("abc")), 3, false, "no route joins the hosts"},
           {zone("Floyd", hosts("abc") + routes({"ab"})), 2, true, "2 of 3 hosts were taken"},
           {zone("Floyd", hosts("abc") + routes({"ab", "bc"})), 3, true, ""},
           {zone("DijkstraCache", hosts("abc") + routes({"ab", "bc"})), 3, true, ""},
           {zone("Dijkstra", hosts("abc") + routes({"ab"})), 2, true, "2 of 3 hosts were taken"},
           {zone("Dijkstra", hosts("abcd") + routes({"ab", "cd"})), 4, false, "no route joins the hosts"},
           {zone("Vivaldi", hosts("abc", "speed='1Gf' coordinates='0 0 0'")), 3, false, "no route joins the hosts"},
           {zone("Vivaldi",
                 "<peer id='p' speed='1Gf' bw_in='1MBps' bw_out='2MBps' coordinates='0 1 0'/>"
                 "<peer id='q' speed='1Gf' bw_in='1MBps' bw_out='2MBps' coordinates='0 9 0'/>"),
            2, true, ""},
           {zone("Full", cluster("c", "radical='0-3'") + cluster("d", "radical='0-6,9'")), 8, true, "8 of 12 hosts"},
           {zone("Full", zone("Full", hosts("ab") + routes({"ab"})).replace(10, 1, "y") +
                             cluster("c", "radical='0-2'") +
                             "<zoneRoute src='y' dst='c' gw_src='a' gw_dst='cc_router'><link_ctn id='l'/></zoneRoute>"),
            5, true, ""},
           {zone("Wifi",
                 "<prop id='access_point' value='r'/><host id='a' speed='1Gf'/><host id='b' speed='1Gf'/>"
                 "<router id='r'/><link id='w' sharing_policy='WIFI' bandwidth='8Mbps,4Mbps' latency='0ms'/>"),
            2, true, "all but the first bandwidth of the wireless link w"},
           {zone("Full", hosts("ab", "speed='4Gf,1Gf' pstate='1' speed_file='/etc/passwd'") + routes({"ab"})) +
                "<trace id='t' periodicity='1.0'>0.0 1.0</trace><trace_connect trace='t' element='a'/>"
                "<actor host='a' function='f'><argument value='1'/></actor>",
            2, true, "speed_file of <host> in line 5 (and 1 more) was left out"},
           {zone("Full", cluster("c", "radical='0-1999'")), 1024, true, "the first 1024 of 2000 hosts were taken"}}) {
    if (is_sanitized() && tried.hosts == 1024) continue;  // a minute there, along the paths of the others
    const Outcome outcome = expect_done(
        "import simgrid " + scratch.write("x.xml", " \n<!-- x -->" + platform_around(tried.elements)) + " --gpu V100");
    EXPECT_THAT(outcome.err, HasSubstr(tried.note));
    const Json platform = Json::parse(outcome.out), &host = platform["instances"]["host"];
    EXPECT_EQ(host["available"], tried.hosts) << tried.elements;
    EXPECT_EQ(platform["gpus"]["V100"]["fp32"], "1000000000flop/s") << tried.elements;
    EXPECT_EQ(host.contains("nic"), tried.network) << tried.elements;
    if (tried.network) {
      EXPECT_EQ(host["nic"]["bandwidth"], "1000000B/s") << tried.elements;
    }
  }
}

TEST(ImportSimgrid, RefusesHostileAndUnfitFiles) {
  const Scratch scratch;
  const std::string two = "<host id='a' speed='1Gf'/><host id='b' speed='1Gf'/>";
  const std::string link = "<link id='l' bandwidth='1MBps' latency='1us'/>";
  std::string deep = "<platform version='4.1'>";
  for (int i = 0; i < 100000; ++i) deep += "<zone id='z' routing='Full'>";
  for (const auto& [content, expected] : std::vector<std::pair<std::string, std::string>>{
           {"<!DOCTYPE platform [<!ENTITY a 'aaaa'>]>\n<platform version='4.1'/>",
            "x.xml:1:20: the document type declares"},
           {deep, "more than 32 levels"},
           {"no XML", "x.xml:1:1: "},
           {"", "no element found"},
           {"<mxfile/>", "found <mxfile>, expected <platform>"},
           {platform_around(
                "<cluster id='c' prefix='n' suffix='' radical='0-99999999' speed='1Gf' bw='1MBps' lat='1us'/>"),
            "x.xml:4:1: more than 65536 hosts"},
           {platform_around("<cluster id='c' prefix='n' suffix='' radical='3-' speed='1Gf' bw='1MBps' lat='1us'/>"),
            "x.xml:4:1: found radical=\"3-\""},
           {platform_around("<zone id='z' routing='Full'><hots id='a' speed='1Gf'/></zone>"), "did you mean <host>?"},
           {platform_around("<include file='/etc/passwd'/>"),
            "x.xml:4:1: found <include>, which SimGrid 3.32 does not read"},
           {platform_around("<zone id='z' routing='Full'><host id='a' speed='1Gf'/><host id='a' speed='1Gf'/></zone>"),
            "x.xml:4:55: a second host \"a\""},
           {platform_around("<zone id='z' routing='Full'>" + two + link + link + "</zone>"), "a second link \"l\""},
           {platform_around("<zone id='z' routing='Full'><host id='a' speed='nanf'/></zone>"),
            "x.xml:4:29: found speed=\"nanf\", expected a number above 0"},
           {platform_around("<zone id='z' routing='Full'>" + two +
                            "<link id='l' bandwidth='0MBps' latency='-1us'/></zone>"),
            "found bandwidth=\"0MBps\", expected a number above 0"},
           {platform_around("<zone id='z&foo;' routing='Full'>" + two + "</zone>"), "x.xml:4:1: unknown entity &foo;"},
           {platform_around("&foo;<zone id='z' routing='Full'>" + two + "</zone>"), "unknown entity &foo;"},
           {"<!DOCTYPE platform SYSTEM 'file:///etc/passwd'>\n<platform version='4.1'/>",
            "found the document type \"file:///etc/passwd\""},
           {"<platform version='3'><AS id='z' routing='Full'/></platform>",
            "x.xml:1:1: found version=\"3\", expected \"4.1\""},
           {platform_around("<zone id='z' routing='Full'>" + two +
                            "<route src='a' dst='b'><link_ctn id='l'/></route></zone>"),
            "x.xml"},
           {platform_around("<zone id='z' routing='Star'>" + two + "</zone>"),
            "x.xml:4:1: found routing=\"Star\", expected \"Full\""},
           {platform_around("<zone id='z' routing='Full'/>"), "has no host"}}) {
    const Outcome outcome = run_program("import simgrid " + scratch.write("x.xml", content) + " --gpu V100");
    EXPECT_EQ(outcome.code, 2) << content.substr(0, 200);
    EXPECT_THAT(outcome.err, HasSubstr(expected));
  }
  const std::string good = scratch.write(
      "x.xml",
      platform_around("<cluster id='c' prefix='n' suffix='' radical='0-2' speed='1Gf' bw='1MBps' lat='1us'/>"));
  EXPECT_THAT(run_program("import simgrid " + good).err, HasSubstr("says nothing of a host's memory; name the GPU"));
  EXPECT_THAT(run_program("import simgrid " + good + " --gpu V100 --gpus-per-node 2").err,
              HasSubstr("3 hosts are no nodes of 2 GPUs each"));
}

/// All-reduces floats and prints the time until the last process is done, and the sum.
constexpr const char* kMpiProgram = R"(#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, count = atoi(argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float *mine = calloc(count, sizeof(float)), *sum = calloc(count, sizeof(float));
  for (int i = 0; i < count; ++i) mine[i] = rank + 1;
  double start = MPI_Wtime();
  MPI_Allreduce(mine, sum, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  double time = MPI_Wtime() - start, last;
  MPI_Reduce(&time, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%.12g %g\n", last, sum[count - 1]);
  MPI_Finalize();
  return 0;
})";

/// The output of a command in a shell, without its messages.
std::string output_of(const Scratch& scratch, const std::string& command) {
  const std::string out = (scratch / "output").string();
  EXPECT_EQ(std::system((command + " > " + out + " 2> " + (scratch / "messages").string() + " < /dev/null").c_str()), 0)
      << content_of(scratch / "messages");
  return content_of(out);
}

// SMPI's messages carry an envelope of 16 bytes beside their data (SimGrid 3.32, src/smpi/mpi/smpi_request.cpp). In its
// logical ring, chunks of S/n bytes are then those of an all-reduce of S + 16 n bytes; recursive doubling sends all S
// bytes at once.
TEST(ExportSimgrid, AnMpiProgramTakesTheTimeOfAllReduce) {
  if (std::system("command -v smpicc > /dev/null && command -v smpirun > /dev/null") != 0)
    GTEST_SKIP() << "smpicc and smpirun of SimGrid are not installed";
  const Scratch scratch;
  const std::string source = scratch.write("all_reduce.c", kMpiProgram), program = (scratch / "all_reduce").string();
  output_of(scratch, "smpicc -O1 " + source + " -o " + program);
  const std::string from = lab(scratch), xml = (scratch / "platform.xml").string();
  struct Case {
    const char *instance, *nodes, *scheme, *algorithm;
    int envelopes;
  };
  constexpr int kFloats = 8 * 3 * 4096;
  for (const Case& tried : {Case{"one", "8", "ring", "lr", 8}, Case{"one", "8", "recursive-doubling", "rdb", 1},
                            Case{"four", "2", "ring", "lr", 8}}) {
    const std::string where = std::string(" --instance ") + tried.instance + " --nodes " + tried.nodes;
    expect_done("export simgrid --catalog " + from + where + " --unit-factors -o " + xml);
    // smpirun names a network model of its own, which comes before that of the file.
    const std::string printed =
        output_of(scratch, "smpirun -np 8 -platform " + xml +
                               " --log=root.thres:error --cfg=network/model:CM02 --cfg=smpi/host-speed:1Gf "
                               "--cfg=smpi/simulate-computation:no --cfg=smpi/allreduce:" +
                               tried.algorithm + " " + program + " " + std::to_string(kFloats));
    double time = 0, sum = 0;
    std::istringstream(printed) >> time >> sum;
    EXPECT_EQ(sum, 36) << printed;  // 1 + 2 + ... + 8
    const double expected = time_of("--catalog " + from + where + " --fidelity message --scheme " + tried.scheme +
                                    " --bytes " + std::to_string(4 * kFloats + 16 * tried.envelopes));
    EXPECT_NEAR(time / expected, 1, 1e-6) << tried.instance << " " << tried.algorithm;
  }
}

}  // namespace
}  // namespace ganymede::cli
