#include "fathom/open_engine.h"

#include <utility>

#include "assembly/instance.h"

namespace fathom {
namespace {

// The engine together with what it runs on.
class OpenedEngine : public Engine {
 public:
  explicit OpenedEngine(std::unique_ptr<assembly::Instance> instance)
      : instance_(std::move(instance)) {}

  Result<RequestId> submit(Request request) override {
    return instance_->requests->submit(std::move(request));
  }
  void cancel(RequestId request, int32_t index) override {
    instance_->requests->cancel(request, index);
  }
  std::vector<TokenEvent> wait(std::chrono::milliseconds timeout) override {
    return instance_->requests->wait(timeout);
  }
  EngineStats stats() const override { return instance_->requests->stats(); }
  void drain() override { instance_->requests->drain(); }

 private:
  std::unique_ptr<assembly::Instance> instance_;
};

}  // namespace

Result<std::unique_ptr<Engine>> open_engine(const Config& config) {
  FATHOM_ASSIGN(std::unique_ptr<assembly::Instance> instance, assembly::assemble(config));
  return std::unique_ptr<Engine>(std::make_unique<OpenedEngine>(std::move(instance)));
}

}  // namespace fathom
