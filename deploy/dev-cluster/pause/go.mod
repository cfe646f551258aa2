module cluster-pause

go 1.26.0
