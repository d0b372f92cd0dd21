#include "sim/world/sim_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

class OpenNode final : public ReadFile {
 public:
  OpenNode(InodePtr node, std::string display)
      : node_(std::move(node)), size_(node_->content.size()), display_(std::move(display)) {}

  std::uint64_t size() const override { return size_; }
  std::optional<Entry> entry() const override {
    return Entry{.name = {}, .size = size_, .identity = node_->number};
  }

  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    if (out.empty()) return;
    const std::uint64_t end = node_->content.size();
    const std::uint64_t there =
        offset < end ? std::min<std::uint64_t>(end - offset, out.size()) : 0;
    if (there > 0) std::memcpy(out.data(), node_->content.data() + offset, there);
    if (there < out.size()) {
      throw Error(Code::kTornFile,
                  "the file ends " + std::to_string(out.size() - there) +
                      " bytes too early; it was truncated or its writer never finished",
                  {.file = display_, .offset = offset + there});
    }
  }

 private:
  InodePtr node_;
  std::uint64_t size_;
  std::string display_;
};

class WriteNode final : public WriteFile {
 public:
  WriteNode(InodePtr node, std::string display, std::function<void()> put)
      : node_(std::move(node)), display_(std::move(display)), put_(std::move(put)) {}

  void write_at(std::uint64_t offset, ByteSpan bytes) override {
    CHECK(node_ != nullptr, display_);
    if (bytes.empty()) return;
    auto& content = node_->content;
    content.resize(std::max<std::size_t>(content.size(), offset + bytes.size()));
    std::memcpy(content.data() + offset, bytes.data(), bytes.size());
  }

  void sync() override {
    CHECK(node_ != nullptr, display_);
    node_->durable_content = node_->content;
    if (put_) put_();
  }

  void close() override {
    CHECK(node_ != nullptr, display_);
    if (put_) put_();
    node_.reset();
  }

 private:
  InodePtr node_;
  std::string display_;
  std::function<void()> put_;
};

}  // namespace

std::unique_ptr<ReadFile> open_node(InodePtr node, std::string display) {
  return std::make_unique<OpenNode>(std::move(node), std::move(display));
}

std::unique_ptr<WriteFile> write_node(InodePtr node, std::string display,
                                      std::function<void()> put) {
  return std::make_unique<WriteNode>(std::move(node), std::move(display), std::move(put));
}

}  // namespace reprise::sim
