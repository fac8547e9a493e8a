#include "test/support/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace weir::test {
namespace {

constexpr long kDaySeconds = 24 * 60 * 60;

void must(bool good) {
  if (!good) std::abort();
}

template <typename Write>
void write_file(const std::string& path, Write write) {
  // Replaced as a whole: a node must not read half a file.
  const std::string next = path + ".new";
  std::FILE* file = std::fopen(next.c_str(), "w");
  must(file != nullptr);
  must(write(file) == 1);
  must(std::fclose(file) == 0 && std::rename(next.c_str(), path.c_str()) == 0);
}

void extend(X509* certificate, X509* issuer, int what, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value);
  must(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

/// Without extensions and signature.
X509* draft(const std::string& name, EVP_PKEY* key, X509_NAME* issuer, long days) {
  X509* certificate = X509_new();
  must(certificate != nullptr && X509_set_version(certificate, 2) == 1);
  std::uint32_t serial = 0;
  must(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -30 * kDaySeconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate), days * kDaySeconds);
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  must(X509_set_issuer_name(certificate, issuer == nullptr ? subject : issuer) == 1);
  must(X509_set_pubkey(certificate, key) == 1);
  return certificate;
}

}  // namespace

struct TestCa::Pair {
  X509* certificate = nullptr;
  EVP_PKEY* key = EVP_EC_gen("P-256");

  ~Pair() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

TestCa::TestCa(std::string folder, const std::string& name)
    : folder_(std::move(folder)),
      file_(folder_ + "/" + name + "-ca.pem"),
      own_(std::make_unique<Pair>()) {
  own_->certificate = draft(name + " CA", own_->key, nullptr, 30);
  extend(own_->certificate, own_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  extend(own_->certificate, own_->certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  must(X509_sign(own_->certificate, own_->key, EVP_sha256()) > 0);
  write_file(file_, [&](std::FILE* file) { return PEM_write_X509(file, own_->certificate); });
}

TestCa::~TestCa() = default;

TestCa::Files TestCa::issue(const std::string& name, int days, const char* usage,
                            const char* names) const {
  Pair issued;
  issued.certificate = draft(name, issued.key, X509_get_subject_name(own_->certificate), days);
  extend(issued.certificate, own_->certificate, NID_subject_alt_name, names);
  extend(issued.certificate, own_->certificate, NID_ext_key_usage, usage);
  must(X509_sign(issued.certificate, own_->key, EVP_sha256()) > 0);
  const Files files{folder_ + "/" + name + ".pem", folder_ + "/" + name + ".key", file_};
  write_file(files.certificate,
             [&](std::FILE* file) { return PEM_write_X509(file, issued.certificate); });
  write_file(files.key, [&](std::FILE* file) {
    return PEM_write_PrivateKey(file, issued.key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  return files;
}

}  // namespace weir::test
