weir_test(NAME store_suite_test LABEL unit SOURCES store_suite_test.cc DEPS store)
weir_test(NAME store_twins_test LABEL unit SOURCES store_twins_test.cc DEPS store)
weir_test(NAME store_group_commit_test LABEL unit SOURCES store_group_commit_test.cc DEPS store)

weir_test(NAME store_rocks_test LABEL unit SOURCES store_rocks_test.cc DEPS store
  LIBS RocksDB::rocksdb-shared)
add_executable(store_crash_writer store_crash_writer.cc)
target_link_libraries(store_crash_writer PRIVATE weir_store GTest::gtest)
add_dependencies(store_rocks_test store_crash_writer)
target_compile_definitions(store_rocks_test PRIVATE
  WEIR_STORE_CRASH_WRITER="$<TARGET_FILE:store_crash_writer>")
