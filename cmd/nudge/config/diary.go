package config

// checkDiary wants of an embedder elsewhere what it is asked for, and refuses keys that would do nothing.
func checkDiary(c *Config, at *place, f *faults) {
	checkAddress(c.Diary.BaseURL, at, "diary", "base_url", f)
	if c.Diary.MinScore > 1 {
		f.add(at.key("min_score"), "diary.min_score", "must be from 0 to 1")
	}
	if c.Diary.Embedder == "openai" {
		if c.Diary.Model == "" {
			f.add(at.key("model"), "diary.model", "is needed: it says which model makes the vectors")
		}
		return
	}
	for key, value := range map[string]string{"base_url": c.Diary.BaseURL, "model": c.Diary.Model, "api_key_env": c.Diary.APIKeyEnv} {
		if value != "" {
			f.add(at.key(key), "diary."+key, `is for embedder = "openai" only`)
		}
	}
}
