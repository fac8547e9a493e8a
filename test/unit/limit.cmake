weir_test(NAME limit_token_bucket_test LABEL unit SOURCES limit_token_bucket_test.cc DEPS limit
  LIBS gmpxx gmp)
