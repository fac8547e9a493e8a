// Goal: what CAF reads is always whole and good, and nobody else's to read. Method: files of the
// test's own, good and bad, and a look at the copy after each.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "src/server/certificate_copy.h"
#include "test/support/certificates.h"
#include "test/support/temporary_folder.h"

namespace weir::server {
namespace {

namespace fs = std::filesystem;
using weir::test::TestCa;

class CertificateCopy : public testing::Test {
 protected:
  void SetUp() override { data_ = folder_ + "/data"; }

  static config::TlsFiles files_of(const TestCa::Files& files) {
    return {files.certificate, files.key, files.ca};
  }
  static std::string contents(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// The certificate is `files`' and all three fit together.
  void expect_in_force(const config::TlsFiles& files) const {
    const config::TlsFiles copy = certificate_copy(data_);
    EXPECT_EQ(contents(copy.certificate), contents(files.certificate));
    EXPECT_TRUE(net::TlsContext::load({copy.certificate, copy.key, copy.ca}, true));
  }

  const weir::test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.string();
  std::string data_;
};

TEST_F(CertificateCopy, IsReadableByThisUserAlone) {
  const TestCa ca(folder_, "own");
  const config::TlsFiles files = files_of(ca.issue("node"));
  fs::permissions(files.key, fs::perms::owner_read | fs::perms::group_read);
  ASSERT_TRUE(copy_certificates(files, data_));
  expect_in_force(files);
  const fs::path folder = fs::path(data_) / "cluster-tls";
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write)
        << entry.path();
  }
}

TEST_F(CertificateCopy, ChangesAsAWholeOrNotAtAll) {
  const TestCa ca(folder_, "own");
  const config::TlsFiles first = files_of(ca.issue("first"));
  ASSERT_TRUE(copy_certificates(first, data_));
  const TestCa foreign(folder_, "foreign");
  const config::TlsFiles strange = files_of(foreign.issue("strange"));
  const std::string broken = folder_ + "/broken.pem";
  std::ofstream(broken) << "-----BEGIN CERTIFICATE-----\nnonsense\n";
  for (const config::TlsFiles& bad :
       {config::TlsFiles{broken, first.key, first.ca},
        config::TlsFiles{first.certificate, broken, first.ca},
        config::TlsFiles{first.certificate, first.key, broken},
        config::TlsFiles{first.certificate, strange.key, first.ca},
        config::TlsFiles{strange.certificate, strange.key, first.ca},
        config::TlsFiles{folder_ + "/none.pem", first.key, first.ca},
        files_of(ca.issue("ended", -1)), files_of(ca.issue("client", 2, "clientAuth"))}) {
    EXPECT_FALSE(copy_certificates(bad, data_));
    expect_in_force(first);
  }
  // More than two, so that each of the two folders is used again.
  for (const char* name : {"second", "third", "fourth"}) {
    const config::TlsFiles next = files_of(ca.issue(name));
    ASSERT_TRUE(copy_certificates(next, data_));
    expect_in_force(next);
  }
}

TEST_F(CertificateCopy, IsMadeAnewAfterACrashHalfWay) {
  const TestCa ca(folder_, "own");
  const config::TlsFiles files = files_of(ca.issue("node"));
  const fs::path folder = fs::path(data_) / "cluster-tls";
  fs::create_directories(folder / "a");
  std::ofstream(folder / "a" / "key.pem") << "half a k";
  fs::create_directory_symlink("b", folder / "next");
  fs::create_directory_symlink("b", folder / "current");
  ASSERT_TRUE(copy_certificates(files, data_));
  expect_in_force(files);
}

}  // namespace
}  // namespace weir::server
