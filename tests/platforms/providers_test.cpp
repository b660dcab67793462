#include "platforms/providers.hpp"

#include <gtest/gtest.h>

#include <set>

#include "common/units.hpp"
#include "platforms/catalog.hpp"

namespace ganymede::platforms {
namespace {

TEST(Providers, HaveARowForEachCatalog) {
  std::set<std::string> names;
  for (const Provider& provider : providers()) EXPECT_TRUE(names.insert(std::string(provider.name)).second);
  EXPECT_EQ(names, std::set<std::string>(provider_names().begin(), provider_names().end()));
  for (const Provider& provider : providers()) {
    EXPECT_EQ(&provider_of(provider.name), &provider);
    EXPECT_EQ(catalog(provider.name).provider, provider.name);
  }
}

TEST(Providers, SayHowTheyAreCalledAndWhatTheyWarnOf) {
  EXPECT_EQ(vendor_of("aws"), "AWS");
  EXPECT_EQ(provider_of("aws").spot_notice, Seconds{120});
  EXPECT_EQ(provider_of("gcp").spot_notice, Seconds{30});
  EXPECT_EQ(provider_of("runpod").spot_notice, Seconds{5});
  EXPECT_EQ(provider_of("vast").spot_notice, Seconds{0});
  EXPECT_TRUE(is_of_a_host("vast", "1x-RTX_4090-32-65536"));
  EXPECT_TRUE(is_of_a_host("runpod", "1x_A100_COMMUNITY"));
  EXPECT_FALSE(is_of_a_host("runpod", "1x_A100_SECURE"));
  EXPECT_FALSE(is_of_a_host("aws", "p3.2xlarge"));
  EXPECT_EQ(provider_of_sky("do"), "digitalocean");
  EXPECT_EQ(sky_cloud_of("digitalocean"), "do");
  EXPECT_EQ(sky_cloud_of("crusoe"), "");
  EXPECT_EQ(owned_provider().name, "private");
  for (const Provider& provider : providers())
    EXPECT_EQ(provider.owned, provider.name == "private" || provider.name == "local") << provider.name;
}

TEST(Providers, OfAUsersFileMayBeUnknown) {
  const Provider& unknown = provider_of("university");
  EXPECT_EQ(unknown.spot_notice, Seconds{30});
  EXPECT_FALSE(unknown.owned);
  EXPECT_TRUE(unknown.store.empty());
  EXPECT_EQ(vendor_of("university"), "university");
}

// A launch file needs all of a label or none of it.
TEST(Providers, LabelNodesWholly) {
  for (const Provider& provider : providers()) {
    const KubernetesNodes& nodes = provider.kubernetes;
    EXPECT_EQ(nodes.spot.key.empty(), nodes.spot.value.empty()) << provider.name;
    EXPECT_TRUE(!nodes.spot_taint || !nodes.spot.key.empty()) << provider.name;
    EXPECT_EQ(nodes.attached_gpu.empty(), nodes.attached_gpus.empty()) << provider.name;
  }
}

}  // namespace
}  // namespace ganymede::platforms
