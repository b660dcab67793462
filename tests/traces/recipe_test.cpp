// Recipes: which networks, batches and steps a name stands for.

#include "traces/recipe.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::traces {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::string& name) {
  try {
    (void)resolve_recipe(name);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing is wrong";
}

std::int64_t parameters(const std::string& name, const char* network) {
  return resolve_recipe(name).layers.networks.at(network).total().parameters;
}

TEST(Recipe, HasThePublishedParameters) {
  // NVlabs/stylegan2 prints these; StyleGAN2-ADA's configuration "auto" has six layers fewer in its mapping, of
  // 512 x 512 + 512 numbers each.
  EXPECT_EQ(parameters("stylegan2", "generator"), 30'370'060);
  EXPECT_EQ(parameters("stylegan2", "discriminator"), 29'012'513);
  EXPECT_EQ(parameters("stylegan2-ada/paper1024", "generator"), 30'370'060);
  EXPECT_EQ(parameters("stylegan2-ada?image=1024", "generator"), 30'370'060 - 6 * (512 * 512 + 512));
  EXPECT_EQ(parameters("stylegan2-ada?image=512", "generator"), 28'700'647);
  EXPECT_EQ(parameters("stylegan2-ada?image=512", "discriminator"), 28'982'849);
  EXPECT_EQ(parameters("stylegan2-ada?image=256", "generator"), 23'191'522);
  EXPECT_EQ(parameters("stylegan2-ada?image=256", "discriminator"), 24'001'089);
  EXPECT_EQ(parameters("stylegan2-ada?image=128", "generator"), 22'949'277);
  EXPECT_EQ(parameters("stylegan2-ada?image=128", "discriminator"), 23'882'369);
  EXPECT_EQ(parameters("stylegan3-t", "generator"), 22'313'167);
  EXPECT_EQ(parameters("stylegan3-t?image=512", "generator"), 24'873'519);
  EXPECT_EQ(parameters("stylegan3-t?image=256", "generator"), 28'472'133);
  EXPECT_EQ(parameters("stylegan3-t?image=128", "generator"), 32'833'523);
  EXPECT_EQ(parameters("stylegan3-t?image=128", "discriminator"), 28'389'121);
}

TEST(Recipe, HasThePublishedParametersOfOtherFamilies) {
  EXPECT_EQ(parameters("hifi-gan", "generator"), 13'926'017);     // table 1 of Kong et al. (2020): 13.92 million
  EXPECT_EQ(parameters("real-esrgan", "generator"), 16'697'987);  // BasicSR prints both
  EXPECT_EQ(parameters("real-esrgan", "discriminator"), 4'376'897);
  EXPECT_EQ(parameters("real-esrgan", "vgg"), 0);  // it is frozen
  EXPECT_EQ(parameters("dcgan", "generator"), 3'576'704);
  EXPECT_EQ(parameters("esrgan", "generator"), 16'697'987);
  EXPECT_EQ(parameters("esrgan", "discriminator"), 14'499'401);
  // StudioGAN's log of BigGAN prints 70,433,988 and 87,982,370, with the gains of both attentions.
  EXPECT_EQ(parameters("biggan", "generator"), 70'433'988 - 1);
  EXPECT_EQ(parameters("biggan", "discriminator"), 87'982'370 - 1);
  // The README of pytorch-pretrained-BigGAN: 50.4 million; Brock et al., table 1: 81.5 million in both networks.
  EXPECT_NEAR(static_cast<double>(parameters("biggan-deep", "generator")), 50.4e6, 0.05e6);
  EXPECT_NEAR(static_cast<double>(parameters("sagan", "generator") + parameters("sagan", "discriminator")), 81.5e6,
              0.05e6);
  // StudioGAN's log of ACGAN has 4,304,387 and 1,057,169: with a gain and a bias of each of ten classes in place of one
  // in six norms, ten outputs more, and norms in the discriminator (of 3, 128, and seven of 128 and 256 in pairs).
  EXPECT_EQ(parameters("sngan", "generator"), 4'304'387 - 6 * (2 * 10 * 256 - 2 * 256));
  EXPECT_EQ(parameters("sngan", "discriminator"), 1'057'169 - (10 * 128 + 10) - 2 * (3 + 128 + 7 * 128));
  // WGAN-GP's critic is the same network with ten outputs more for the classes.
  EXPECT_EQ(parameters("wgan-gp", "discriminator"), 1'053'825 + 10 * 128 + 10);
  // The whole generator of ProGAN has 23,079,115, with the convolutions to RGB of the eight lower resolutions.
  EXPECT_EQ(parameters("progan", "generator"), 23'079'115 - (3 * (4 * 512 + 256 + 128 + 64 + 32) + 8 * 3));
  EXPECT_NEAR(static_cast<double>(parameters("progan", "discriminator")), 23.1e6, 0.05e6);
  EXPECT_EQ(parameters("pix2pixhd", "generator"), 182'546'755);
  EXPECT_EQ(parameters("pix2pixhd", "discriminator"), 5'603'202);
  // SPADE's program prints 5.6 million of the discriminators; Li et al. (2020), table 1, state 93.0 million parameters
  // and 281 G multiply-adds of the generator.
  EXPECT_NEAR(static_cast<double>(parameters("spade", "discriminator")), 5.6e6, 0.05e6);
  const LayerCost spade = resolve_recipe("spade").layers.networks.at("generator").total();
  EXPECT_NEAR(static_cast<double>(spade.parameters), 93.0e6, 0.05e6);
  EXPECT_NEAR(spade.flops / 2, 281e9, 0.5e9);
  // Rombach et al. (2022) state 274 million; the paper of the MLP GAN 2,289,769 in all, 4,400 of them statistics.
  EXPECT_NEAR(static_cast<double>(parameters("latent-diffusion", "unet")), 274e6, 0.5e6);
  EXPECT_EQ(parameters("mlp-gan", "generator"), 2'051'384);
  EXPECT_EQ(parameters("mlp-gan", "discriminator"), 2'289'769 - 4'400 - 2'051'384);
}

TEST(Recipe, OfStyleGanXlTrainsTheLayersOfItsStage) {
  // Its issue 84 prints the stage of 16 pixels: L0_36_1024 to L10_16_3.
  constexpr std::int64_t kAffine = 512 * 1024 + 1024, kLayer = 1024 * 1024 * 9 + 1024 + kAffine;
  constexpr std::int64_t kToRgb = 1024 * 3 + 3 + kAffine, kFourier = 1024 * 1024 + 512 * 4 + 4;
  constexpr std::int64_t kMapping = 320 * 64 + 64 + 128 * 512 + 512 + 512 * 512 + 512;
  EXPECT_EQ(parameters("stylegan-xl?image=16", "generator"), kMapping + kFourier + 10 * kLayer + kToRgb);
  // A further stage has seven layers and the last in place of three; eight and five of those before stay.
  EXPECT_EQ(parameters("stylegan-xl?image=32", "generator"), 7 * kLayer + kToRgb);
  const auto frozen = [](int side, const char* network) {
    const auto networks = resolve_recipe(fmt::format("stylegan-xl?image={}", side)).layers.networks;
    return networks.at(network).frozen_parameters;
  };
  EXPECT_EQ(frozen(16, "stem"), 0);
  EXPECT_EQ(frozen(32, "stem"), kMapping + kFourier + 8 * kLayer);
  EXPECT_EQ(frozen(64, "stem"), kMapping + kFourier + 13 * kLayer);
  // huggingface/pytorch-image-models: 87,338,192 parameters of deit_base_distilled_patch16_224 and 4,652,008 of
  // tf_efficientnet_lite0, two heads, tokens and places and one head with its convolution among them.
  const auto mixing = [](std::vector<std::int64_t> channels) {
    std::int64_t sum = 512 * 256 + 256 + 256 * 128 + 128 + 128 * 64 + 64 + 64 * 64 + 64;
    for (std::size_t i = 0; i < 4; ++i) sum += (channels[i] + 1) * (64 << i);
    return sum;
  };
  const std::int64_t readout = 768 * (96 + 192 + 384 + 768) + 96 + 192 + 384 + 768 + 96 * 96 * 16 + 96 + 192 * 192 * 4 +
                               192 + 768 * 768 * 9 + 768;
  EXPECT_EQ(frozen(32, "deit") - readout - mixing({96, 192, 384, 768}), 87'338'192 - 2 * 769'000 - 200 * 768);
  EXPECT_EQ(frozen(256, "efficientnet") - mixing({24, 40, 112, 320}), 4'652'008 - 1'281'000 - 320 * 1280 - 2 * 1280);
}

TEST(Recipe, RunsWhatBelongsToEachStepInItsUpdate) {
  const auto updates = [](const std::string& recipe) {
    double sum = 0;
    for (const LayerPass& one : resolve_recipe(recipe).layers.step)
      if (one.network == "discriminator" && one.kind == LayerPass::Kind::update) sum += one.times;
    return sum;
  };
  EXPECT_DOUBLE_EQ(updates("progan"), 1);  // the penalty has no update of its own
  EXPECT_DOUBLE_EQ(updates("wgan-gp"), 5);
}

TEST(Recipe, EachThatComesWithTheProgramIsReadWithEachOfItsConfigurations) {
  for (const std::string& name : recipe_names()) {
    const documents::Recipe document = built_in_recipe(name);
    EXPECT_EQ(document.name, name);
    EXPECT_TRUE(document.sources.contains("layers") && document.sources.contains("training")) << name;
    for (const int side : resolve_recipe(name).sizes)
      EXPECT_NO_THROW(resolve_recipe(name + "?image=" + std::to_string(side))) << name << " " << side;
    for (const auto& config : document.configs)
      EXPECT_NO_THROW(resolve_recipe(name + "/" + config.name)) << config.name;
    const JsonNode again = JsonNode::parse(documents::recipe_text(document), name);
    EXPECT_EQ(documents::recipe_text(documents::read_recipe(again)), documents::recipe_text(document));
  }
}

TEST(Recipe, SplitsTheBatchAsItsTrainingDoes) {
  // train.py of StyleGAN2-ADA: min(GPUs x min(4096 / image, 32), 64), at least one a GPU.
  const Recipe automatic = resolve_recipe("stylegan2-ada?image=512");
  for (const auto& [gpus, all] : {std::pair{1, 8}, {2, 16}, {4, 32}, {8, 64}, {16, 64}, {128, 128}}) {
    EXPECT_EQ(automatic.batch_on(gpus).all, all);
    EXPECT_EQ(automatic.batch_on(gpus).passes, 1);
  }
  EXPECT_EQ(resolve_recipe("stylegan2-ada?image=512&gpus=8").batch_on(2).pass, 32);  // that of 8 GPUs on 2
  // paper512: 64 images, 8 a pass; on one GPU they take eight passes.
  const RecipeBatch alone = resolve_recipe("stylegan2-ada/paper512").batch_on(1);
  EXPECT_EQ(alone.pass, 8);
  EXPECT_EQ(alone.passes, 8);
  EXPECT_EQ(resolve_recipe("stylegan2-ada/paper512?batch_per_gpu=16").batch_on(1).passes, 4);
  EXPECT_EQ(resolve_recipe("stylegan3-t?image=256").batch_on(1).passes, 2);
}

TEST(Recipe, RunsItsRegularizersInSomeStepsWithUpdatesOfTheirOwn) {
  const auto times = [](const std::string& recipe, const std::string& pass) {
    double sum = 0;
    for (const LayerPass& one : resolve_recipe(recipe).layers.step)
      if (one.name == pass) sum += one.times;
    return sum;
  };
  EXPECT_DOUBLE_EQ(times("stylegan2-ada", "generator.path_length_forward"), 0.125);
  EXPECT_DOUBLE_EQ(times("stylegan2-ada", "generator.path_length_backward"), 0.25);
  EXPECT_DOUBLE_EQ(times("stylegan2-ada", "discriminator.r1_gradient"), 0.0625);
  EXPECT_DOUBLE_EQ(times("stylegan2-ada/cifar", "generator.path_length_forward"), 0);
  EXPECT_DOUBLE_EQ(times("stylegan3-t", "discriminator.r1_backward"), 0.125);
}

TEST(Recipe, HasTheHighestResolutionsInSixteenBits) {
  // At 512 pixels those are 64 to 512; the weights' 512 x 512 x 3 x 3 of lower ones are in the list's precision.
  const auto half = [](const std::string& name) {
    double share = 0, all = 0;
    const Recipe recipe = resolve_recipe(name);
    for (const Layer& layer : recipe.layers.networks.at("discriminator").layers)
      (layer.precision == "fp16" ? share : all) += layer.flops;
    return share / (share + all);
  };
  EXPECT_EQ(half("stylegan2-ada?image=512&fp16_resolutions=0"), 0);
  EXPECT_EQ(half("stylegan2-ada?image=512&precision=fp32"), 0);
  EXPECT_GT(half("stylegan2-ada?image=512"), half("stylegan2-ada?image=512&fp16_resolutions=2"));
}

TEST(Recipe, SaysWhatIsWrongAndWhatIsPossible) {
  EXPECT_THAT(refusal("stylegan2-adda"), HasSubstr("did you mean \"stylegan2-ada\"?"));
  EXPECT_THAT(refusal("stylegan2-ada/paper1014"), HasSubstr("did you mean \"paper1024\"?"));
  EXPECT_THAT(refusal("stylegan2-ada?imge=512"), HasSubstr("did you mean \"image\"?"));
  EXPECT_THAT(refusal("stylegan2-ada?image"), HasSubstr("expected such as image=256"));
  EXPECT_THAT(refusal("stylegan2-ada?image=300"), AllOf(HasSubstr("image of 300"), HasSubstr("256, 512, 1024")));
  EXPECT_THAT(refusal("stylegan2-ada?fp16_resolutions=12"), HasSubstr("expected at most 9"));
  EXPECT_THAT(refusal("stylegan2-ada/paper512?batch=20"),
              HasSubstr("expected a multiple of 8, 1 x 8 of a pass on each GPU"));
  EXPECT_THAT(refusal("stylegan2-ada/paper512?gpus=3"),
              HasSubstr("found 64 images of all GPUs, expected a multiple of 3"));
  EXPECT_THAT(refusal("stylegan2-ada?batch=-1"), HasSubstr("expected a whole number from 1"));
  EXPECT_THAT(refusal("stylegan2-ada?precision=fp8"), HasSubstr("expected \"bf16\", \"fp16\", \"fp32\" or \"tf32\""));
  EXPECT_THAT(refusal("pix2pix/auto"), HasSubstr("it has none"));
}

/// The refusal of a file that is StyleGAN3's recipe with one member changed.
std::string refusal_of_file(const std::string& pointer, const Json& value) {
  const TemporaryFolder folder;
  Json content = Json::parse(documents::recipe_text(built_in_recipe("stylegan3-t")));
  content[JsonPointer(pointer)] = value;
  std::ofstream(folder.path() / "mine.json") << content.dump();
  return refusal((folder.path() / "mine.json").string());
}

// R3GAN's loop and NVAE's average_gradients() reduce after the backward pass; nn.DataParallel does not say flat.
TEST(Recipe, GradientsAreReducedAsTheCodeDoesIt) {
  const auto flat = [](const char* name) {
    TraceSoftware software;
    software.name = kRecipeSoftware, software.version = name;
    return reduces_flat(software);
  };
  for (const char* name : {"r3gan", "nvae", "stylegan2", "stylegan3-t"}) EXPECT_TRUE(flat(name)) << name;
  for (const char* name : {"stylegan2-ada", "hifi-gan", "pix2pix"}) EXPECT_FALSE(flat(name)) << name;
}

TEST(Recipe, OfAFileHasErrorsAtTheirPlaces) {
  EXPECT_EQ(refusal_of_file("/about", "as it is"), "nothing is wrong");
  EXPECT_THAT(
      refusal_of_file("/layers/networks/generator/layers/0/kind", "repet"),
      AllOf(HasSubstr("mine.json: /layers/networks/generator/layers/0/kind"), HasSubstr("did you mean \"repeat\"?")));
  EXPECT_THAT(refusal_of_file("/training/gradients", "dpp"), HasSubstr("/training/gradients: found \"dpp\""));
  EXPECT_THAT(refusal_of_file("/training/image", 100), HasSubstr("/layers/image/sizes"));
  EXPECT_THAT(refusal_of_file("/training/settings/fp16_resolutions", 10),
              HasSubstr("/training/settings/fp16_resolutions: found 10, expected at most 9"));
  EXPECT_THAT(refusal_of_file("/training/batch", 30),
              HasSubstr("mine.json: /training/batch: found 30 images of all GPUs, expected a multiple of 4, 1 x 4 of a "
                        "pass on each GPU, such as 32"));
  EXPECT_THAT(refusal_of_file("/training/regularizers/0/network", "critic"), HasSubstr("no step updates a network"));
  EXPECT_THAT(refusal_of_file("/training/batch", 1'000'000'000), HasSubstr("/training/batch: found 1000000000"));
  // Zeros and negative numbers divide by zero, or are steps that take no time.
  for (const auto& [cell, value] : std::vector<std::pair<int, Json>>{{1, -1}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {5, -1}})
    EXPECT_THAT(refusal_of_file(fmt::format("/measured/0/rows/0/{}", cell), value),
                HasSubstr(fmt::format("/measured/0/rows/0/{}: found {}, expected", cell, value.dump())));
  EXPECT_THAT(refusal_of_file("/layers", 5), HasSubstr("/layers: found 5, expected an object"));
  EXPECT_THAT(refusal_of_file("/layers/step", 5), HasSubstr("/layers/step: found 5"));
  EXPECT_THAT(refusal_of_file("/layers/step/0", 5), HasSubstr("/layers/step/0"));
  EXPECT_THAT(refusal_of_file("/layers/step/0/pass", 5), HasSubstr("/layers/step/0/pass: found 5"));
  EXPECT_THAT(refusal("stylegan2-ada?image=512&image=256"), HasSubstr("found \"image\" twice"));
  EXPECT_THAT(refusal_of_file("/layers", {{"list", "dcgam"}}), HasSubstr("did you mean \"dcgan\"?"));
}

}  // namespace
}  // namespace ganymede::traces
