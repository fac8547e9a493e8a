#include "src/server/notifier.h"

#include <systemd/sd-daemon.h>

namespace weir::server {

// The results are of no use: without systemd there is nobody to tell.
void Notifier::ready(const std::string& status) {
  ::sd_notify(0, ("READY=1\nSTATUS=" + status).c_str());
}
void Notifier::reloading() { ::sd_notify(0, "RELOADING=1"); }
void Notifier::stopping() { ::sd_notify(0, "STOPPING=1"); }

}  // namespace weir::server
