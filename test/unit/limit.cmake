weir_test(NAME limit_token_bucket_test LABEL unit SOURCES limit_token_bucket_test.cc DEPS limit
  LIBS gmpxx gmp)
weir_test(NAME limit_calendar_test LABEL unit SOURCES limit_calendar_test.cc DEPS limit)
weir_test(NAME limit_window_test LABEL unit SOURCES limit_fixed_window_test.cc limit_sliding_window_test.cc
  DEPS limit LIBS gmpxx gmp)
