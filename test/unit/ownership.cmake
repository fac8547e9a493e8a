weir_test(NAME ownership_test LABEL unit SOURCES ownership_host_test.cc ownership_joint_test.cc
  ownership_owner_test.cc ownership_replica_test.cc ownership_seat_test.cc ownership_window_test.cc
  DEPS ownership store_twins)
