// The description of step traces: what its schema asks of kernels of each kind, of lists and of quantities. How traces
// are read is tested in tests/traces.

#include "documents/step_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

OrderedJson schema() { return schema_of(described(StepTrace{}), kStepTraceSchema, "", /*strict=*/true); }

// A convolution has no "m" and a product no "window", so that neither may be required of all kernels.
TEST(StepTraceSchema, RequiresOfAKernelWhatEachKindHas) {
  const OrderedJson kernel = schema()["definitions"]["kernel"];
  EXPECT_EQ(kernel["required"], OrderedJson({"phase", "kind"}));
  for (const char* member : {"in", "window", "m", "transposed", "op", "rows"})
    EXPECT_TRUE(kernel["properties"].contains(member)) << member;
  EXPECT_EQ(kernel["properties"]["phase"]["minLength"], 1);
}

TEST(StepTraceSchema, KnowsListsMapsAndQuantities) {
  const OrderedJson members = schema()["properties"], batch = members["batches"]["items"]["properties"];
  EXPECT_EQ(members["batches"]["minItems"], 1);
  EXPECT_EQ(members["device"]["properties"]["fp32"]["type"], "string");
  EXPECT_EQ(members["networks"]["additionalProperties"]["required"],
            OrderedJson({"parameters", "flops_per_image", "gradient_bytes"}));
  EXPECT_EQ(batch["wall_s"]["items"]["minimum"], 0);
  EXPECT_EQ(batch["wall_s"]["minItems"], 1);
  EXPECT_EQ(batch["utilization"]["properties"]["samples"]["additionalProperties"]["items"]["type"], "number");
}

TEST(KernelsJson, LeavesOutWhatIsUsual) {
  TraceKernel kernel;
  kernel.phase = "p", kernel.op = "add", kernel.cols = 3;
  EXPECT_EQ(kernels_json({kernel}).dump(), R"([{"phase":"p","kind":"elementwise","op":"add","cols":3}])");
}

}  // namespace
}  // namespace ganymede::documents
