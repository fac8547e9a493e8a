// Certificates for tests: a CA of the test's own, and what it has signed, as PEM files in the
// test's folder. Elliptic keys, so that a test makes many.
#pragma once

#include <memory>
#include <string>

namespace weir::test {

class TestCa {
 public:
  /// Writes `NAME-ca.pem` into `folder`.
  TestCa(std::string folder, const std::string& name);
  ~TestCa();
  TestCa(const TestCa&) = delete;
  TestCa& operator=(const TestCa&) = delete;

  struct Files {
    std::string certificate;
    std::string key;
    std::string ca;
  };
  /// Signs a certificate for the hosts `names` and writes it with its key. `days`: until it ends;
  /// negative: it has ended. `usage`: the ends of a connection that may show it.
  Files issue(const std::string& name, int days = 2, const char* usage = "serverAuth,clientAuth",
              const char* names = "IP:127.0.0.1,DNS:localhost") const;
  const std::string& file() const { return file_; }

 private:
  struct Pair;
  std::string folder_;
  std::string file_;
  std::unique_ptr<Pair> own_;
};

}  // namespace weir::test
