CREATE TABLE coupon (code text PRIMARY KEY, uses int NOT NULL);
INSERT INTO coupon VALUES ('SPRING', 0);
