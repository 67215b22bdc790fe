UPDATE conversation SET epoch = lower(hex(randomblob(8))) WHERE live
