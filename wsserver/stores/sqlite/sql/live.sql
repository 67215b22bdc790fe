SELECT json_group_array(key) FROM conversation WHERE live
