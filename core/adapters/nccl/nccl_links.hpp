#pragma once
// All links of a fabric, which fail together. Only this folder's sources include this header.

#include <memory>
#include <optional>
#include <vector>

#include "core/adapters/nccl/nccl_link.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// The first failure breaks every link. An abort frees device memory, and a free waits for all
/// kernels of the device, so one of another link that waits for the same lost member would keep the
/// abort, and with it every call of the driver, waiting for ever.
class NcclLinks {
 public:
  using Links = std::vector<std::shared_ptr<NcclLink>>;

  /// In order of creation.
  const Links& all() const { return links_; }
  void add(std::shared_ptr<NcclLink> link) { links_.push_back(std::move(link)); }
  void remove(const std::shared_ptr<NcclLink>& link) { std::erase(links_, link); }
  void clear() { links_.clear(); }

  /// The error that broke the links; nothing while they are whole.
  const std::optional<Error>& broken() const { return broken_; }
  /// Throws the error that broke the links.
  void require_whole() const;
  /// Remembers `why` if it is the first failure, and tells the members of every link and NCCL to
  /// stop. Waits for nothing. Returns the first failure.
  const Error& fail(const Error& why);

 private:
  Links links_;
  std::optional<Error> broken_;
};

}  // namespace reprise
