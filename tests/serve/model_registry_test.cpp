#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
#include <thread>

#include "common/errors.hpp"
#include "serve/generator_server.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::serve {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Answers as MLflow's REST interface does, of one model "digits" with the versions 1 and 2; tests/python asks a server
/// of MLflow itself.
class ModelRegistry : public testing::Test {
 protected:
  ModelRegistry() {
    const auto version = [](const httplib::Request& request, httplib::Response& response) {
      const std::string number = request.has_param("alias") ? "2" : request.get_param_value("version");
      const bool known = request.get_param_value("name") == "digits" && (number == "1" || number == "2");
      response.status = known ? 200 : 404;
      const std::string tag = number == "1" ? "" : R"({ "key": "ganymede.file", "value": "step-000000000002.ckpt" })";
      response.set_content(known ? R"({ "model_version": { "name": "digits", "version": ")" + number +
                                       R"(", "tags": [ )" + tag + " ] } }"
                                 : R"({ "error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such version" })",
                           "application/json");
    };
    http_.Get("/mlflow/api/2.0/mlflow/model-versions/get", version);
    http_.Get("/mlflow/api/2.0/mlflow/registered-models/alias", version);
    http_.Get("/mlflow/api/2.0/mlflow/model-versions/get-download-uri",
              [this](const httplib::Request&, httplib::Response& response) {
                response.set_content(R"({ "artifact_uri": ")" + place_ + "\" }", "application/json");
              });
    http_.Get("/mlflow/api/2.0/mlflow-artifacts/artifacts/0/run/artifacts/checkpoint/step-000000000002.ckpt",
              [this](const httplib::Request& request, httplib::Response& response) {
                authorization_ = request.get_header_value("Authorization");
                response.set_content("bytes", "application/octet-stream");
              });
    const int port = http_.bind_to_any_port("127.0.0.1");
    server_ = "http://127.0.0.1:" + std::to_string(port) + "/mlflow/";
    listener_ = std::thread([this] { http_.listen_after_bind(); });
    while (!http_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~ModelRegistry() override {
    http_.stop();
    listener_.join();
  }
  std::string refusal(const std::string& generator) {
    return message_of<ConfigError>([&] { fetch_model(generator, server_, ""); });
  }

  httplib::Server http_;
  std::thread listener_;
  std::string server_, authorization_, place_ = "mlflow-artifacts:/0/run/artifacts/checkpoint";
};

TEST_F(ModelRegistry, HasAVersionByItsNumberAndByAnAlias) {
  for (const char* generator : {"models:/digits/2", "models:/digits@best"}) {
    const RegisteredModel model = fetch_model(generator, server_, "Bearer secret");
    EXPECT_EQ(model.name, "digits");
    EXPECT_EQ(model.version, 2);
    EXPECT_EQ(model.file, "step-000000000002.ckpt");
    EXPECT_EQ(model.bytes, "bytes");
    EXPECT_EQ(authorization_, "Bearer secret");
  }
}

TEST_F(ModelRegistry, ReadsAFolderThatBothSee) {
  const TemporaryFolder folder;
  folder.add("step-000000000002.ckpt", "from the folder");
  for (const std::string prefix : {"", "file://"}) {
    place_ = prefix + folder.path().string() + "/";
    EXPECT_EQ(fetch_model("models:/digits/2", server_, "").bytes, "from the folder");
  }
}

TEST_F(ModelRegistry, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("models:/digits/3"), AllOf(HasSubstr("models:/digits/3"), HasSubstr("no such version")));
  EXPECT_THAT(refusal("models:/digits/1"), HasSubstr("no tag ganymede.file"));
  for (const char* generator : {"models:/digits", "models:/digits/", "models:/digits@", "models://3"})
    EXPECT_THAT(refusal(generator), HasSubstr("expected models:/NAME/VERSION or models:/NAME@ALIAS")) << generator;
  EXPECT_THAT(refusal("models:/digits/latest"), HasSubstr("expected a version's number"));
  place_ = "s3://bucket/run";
  EXPECT_THAT(refusal("models:/digits/2"), HasSubstr("mlflow artifacts download --artifact-uri s3://bucket/run"));
  for (const char* server : {"", "http://", "https://", "host:5000", "sqlite:///runs.db", "http:///x"})
    EXPECT_THAT(message_of<ConfigError>([&] { fetch_model("models:/digits/2", server, ""); }),
                HasSubstr("MLFLOW_TRACKING_URI: found"))
        << server;
  EXPECT_THAT(message_of<Failure>([&] { fetch_model("models:/digits/2", "http://127.0.0.1:9", ""); }),
              HasSubstr("http://127.0.0.1:9: gave no answer"));
}

}  // namespace
}  // namespace ganymede::serve
