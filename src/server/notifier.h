// Tells systemd how the service is (Type=notify); does nothing without NOTIFY_SOCKET. One thread.
#pragma once

#include <string>

namespace weir::server {

class Notifier {
 public:
  void ready(const std::string& status);
  void reloading();
  void stopping();
};

}  // namespace weir::server
