#include "kvcache/prefix_hasher.h"

#include <openssl/evp.h>

#include <bit>
#include <memory>

#include "base/check.h"

namespace fathom::kvcache {
namespace {

static_assert(std::endian::native == std::endian::little, "keys are made of little-endian numbers");

// Fetching an algorithm takes microseconds, so it happens once.  A library context of our own takes
// the built-in provider, whatever the openssl.cnf of the machine says.  Both live as long as the
// process.
const EVP_MD* sha256() {
  static const EVP_MD* const algorithm =
      EVP_MD_fetch(OSSL_LIB_CTX_new(), "SHA256", /*properties=*/nullptr);
  FATHOM_CHECK(algorithm != nullptr) << "libcrypto has no SHA-256";
  return algorithm;
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class Sha256 {
 public:
  Sha256() {
    thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> reused(EVP_MD_CTX_new());
    context_ = reused.get();
    FATHOM_CHECK(context_ != nullptr && EVP_DigestInit_ex2(context_, sha256(), nullptr) == 1);
  }
  void add(const void* bytes, size_t size) {
    FATHOM_CHECK(EVP_DigestUpdate(context_, bytes, size) == 1);
  }
  BlockKey finish() {
    BlockKey key;
    FATHOM_CHECK(EVP_DigestFinal_ex(context_, key.digest.data(), nullptr) == 1);
    return key;
  }

 private:
  EVP_MD_CTX* context_;
};

}  // namespace

BlockKey namespace_key(std::span<const std::string_view> parts) {
  // The first bytes keep a namespace from being the key of a block.
  constexpr std::string_view kPurpose = "fathom block namespace 1\n";
  Sha256 sha;
  sha.add(kPurpose.data(), kPurpose.size());
  for (const std::string_view part : parts) {
    const uint64_t size = part.size();
    sha.add(&size, sizeof size);
    sha.add(part.data(), part.size());
  }
  return sha.finish();
}

BlockKey next_block_key(const BlockKey& previous, std::span<const int32_t> ids,
                        std::span<const MediaStart> media) {
  // A pending token would give different contents the same key.
  int32_t any_negative = 0;
  for (const int32_t id : ids) any_negative |= id;
  FATHOM_CHECK(any_negative >= 0) << "a token id of a block is negative";

  struct {
    BlockKey previous;
    uint64_t num_ids;
  } const head{previous, ids.size()};
  static_assert(sizeof head == 40 && sizeof(MediaStart) == 40, "hashed as they lie in memory");
  Sha256 sha;
  sha.add(&head, sizeof head);
  sha.add(ids.data(), ids.size_bytes());
  if (!media.empty()) sha.add(media.data(), media.size_bytes());
  return sha.finish();
}

}  // namespace fathom::kvcache
